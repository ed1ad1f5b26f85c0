package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// recorded is what the request log says of a request.
type recorded struct {
	ID, Method, Path, Route, Product, Code, Reason, Detail, Flags, Edge, Class, Host, Explanation string
	PathTemplate                                                                                 string `json:"path_template"`
	Account                                                                                      string `json:"account_id"`
	Key                                                                                          string `json:"key_id"`
	Scopes                                                                                       []string
	Status                                                                                       int
	Time                                                                                         time.Time
	EndedAt                                                                                      time.Time `json:"ended_at"`
	Timings                                                                                      struct {
		Forwarded *int64 `json:"forwarded_us"`
		FirstByte *int64 `json:"first_byte_us"`
		Total     int64  `json:"total_us"`
	}
}

// recordedAs waits until the request log has the request of an answer, and reads it as
// an operator.
func (s *stack) recordedAs(t testing.TB, r response) (got recorded) {
	t.Helper()
	id := r.Header.Get("X-Request-Id")
	if id == "" {
		t.Fatalf("the answer %d has no id", r.StatusCode)
	}
	eventually(t, "request "+id+" is recorded", func() error {
		a, err := try(http.MethodGet, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/requests/"+id, s.dev["SLUICE_ADMIN_KEY"], nil)
		if err != nil {
			return err
		}
		if a.StatusCode != 200 {
			return fmt.Errorf("status %d: %s", a.StatusCode, a.body)
		}
		got = into[recorded](t, a)
		return nil
	})
	if got.Status != r.StatusCode || got.ID != id {
		t.Errorf("recorded as %+v, was %d", got, r.StatusCode)
	}
	return got
}

// Whatever became of a request, its id leads to what happened: who called, what was
// asked for, and why it failed.
func TestEveryKindOfEndIsRecorded(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key, id := s.newKey(t, "streams:read")
	for name, c := range map[string]struct {
		method, path, key string
		want              recorded
	}{
		"without a key":     {"GET", "/v1/streams", "", recorded{Status: 401, Route: "streams.list", PathTemplate: "/v1/streams", Product: "media", Code: "authentication_required"}},
		"without the scope": {"POST", "/v1/streams", key, recorded{Status: 403, Route: "streams.create", Product: "media", Code: "AUTH_002", Key: id}},
		"no such route":     {"GET", "/v1/nothing/there", key, recorded{Status: 403, Route: "unmapped", Code: "ROUTE_NOT_MAPPED"}},
		"no such stream":    {"GET", "/v1/streams/none", key, recorded{Status: 404, Route: "streams.get", PathTemplate: "/v1/streams/{id}", Product: "media", Detail: "via_upstream", Key: id}},
		"a good one":        {"GET", "/v1/streams?limit=1", key, recorded{Status: 200, Route: "streams.list", Product: "media", Detail: "via_upstream", Key: id}},
		"a bad path":        {"GET", "/v1/a%2Fb", key, recorded{Status: 400, Code: "invalid_request", Detail: "path_normalization_failed"}},
	} {
		got := s.recordedAs(t, call(t, c.method, s.url(c.path), c.key, nil))
		w := c.want
		if got.Status != w.Status || got.Route != w.Route || got.Code != w.Code || got.Key != w.Key || got.Product != w.Product || got.Detail != w.Detail || (got.Account != "") != (w.Key != "") {
			t.Errorf("%s: recorded %+v, want %+v", name, got, w)
		}
		path, _, _ := strings.Cut(c.path, "?")
		if w.PathTemplate != "" && got.PathTemplate != w.PathTemplate || got.Path != strings.ReplaceAll(path, "%2F", "/") || got.Method != c.method || got.Explanation == "" {
			t.Errorf("%s: recorded %+v", name, got)
		}
		if (got.Timings.FirstByte != nil) != (w.Detail == "via_upstream") || got.Timings.Total <= 0 {
			t.Errorf("%s: timings %+v", name, got.Timings)
		}
		if got.Key == id && !strings.Contains(fmt.Sprint(got.Scopes), "streams:read") {
			t.Errorf("%s: scopes %v", name, got.Scopes)
		}
	}
}

// An account reads its own requests, by any filter, and nobody else's.
func TestAccountsReadTheirOwnRequests(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key, id := s.newKey(t, "streams:read", "analytics:read")
	own := s.recordedAs(t, call(t, http.MethodGet, s.url("/v1/streams/none"), key, nil))
	stranger := s.recordedAs(t, call(t, http.MethodGet, s.url("/v1/streams/none"), "", nil))
	q := url.Values{"key": {id}, "status": {"4xx"}, "route": {"streams.get"}, "product": {"media"}, "method": {"get"}, "since": {own.Time.Add(-time.Minute).Format(time.RFC3339)}}
	r := call(t, http.MethodGet, s.url("/v1/requests?"+q.Encode()), key, nil)
	wantStatus(t, r, 200)
	if list := into[struct{ Data []recorded }](t, r).Data; len(list) != 1 || list[0].ID != own.ID {
		t.Errorf("%+v, want %s", list, own.ID)
	}
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/requests/"+own.ID), key, nil), 200)
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/requests/"+stranger.ID), key, nil), 404)
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/requests?status=none&since=now&cursor=x&limit=0"), key, nil), 400)
	without, _ := s.newKey(t, "streams:read")
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/requests"), without, nil), 403)
}
