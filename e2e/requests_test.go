package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// recorded is what the request log says of a request.
type recorded struct {
	ID, Method, Path, Route, Product, Code, Reason, Detail, Flags, Edge, Class, Host, Explanation string
	PathTemplate                                                                                  string `json:"path_template"`
	WouldRefuse                                                                                   string `json:"would_refuse"`
	WouldReason                                                                                   string `json:"would_reason"`
	Account                                                                                       string `json:"account_id"`
	Key                                                                                           string `json:"key_id"`
	Scopes                                                                                        []string
	BytesIn                                                                                       int64 `json:"bytes_in"`
	BytesOut                                                                                      int64 `json:"bytes_out"`
	Status                                                                                        int
	Time                                                                                          time.Time
	EndedAt                                                                                       time.Time `json:"ended_at"`
	Timings                                                                                       struct {
		Forwarded *int64 `json:"forwarded_us"`
		FirstByte *int64 `json:"first_byte_us"`
		Total     int64  `json:"total_us"`
	}
}

// recordedAs waits until the request log has the request of an answer, and reads it as
// an operator. It is for stacks of one test, and accounts of its own: see recordedOf.
func (s *stack) recordedAs(t testing.TB, r response) (got recorded) {
	t.Helper()
	eventually(t, "request "+r.Header.Get("X-Request-Id")+" is recorded", func() (err error) {
		got, err = s.logged(t, r)
		return err
	})
	return got
}

// recordedOf asks until a request is recorded. In one second an edge records so many of one
// account, of one address and in all: tests that share a stack push each other's out.
func (s *stack) recordedOf(t testing.TB, ask func() response) (got recorded) {
	t.Helper()
	const again = 5 * time.Second // edges tell twice a second
	var r response
	var asked time.Time
	eventually(t, "a request is recorded", func() (err error) {
		if time.Since(asked) > again {
			r, asked = ask(), time.Now()
		}
		got, err = s.logged(t, r)
		return err
	})
	return got
}

// logged reads the request of an answer from the request log, as an operator.
func (s *stack) logged(t testing.TB, r response) (got recorded, err error) {
	t.Helper()
	id := r.Header.Get("X-Request-Id")
	if id == "" {
		t.Fatalf("the answer %d has no id", r.StatusCode)
	}
	a, err := try(http.MethodGet, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/requests/"+id, s.dev["SLUICE_ADMIN_KEY"], nil)
	if err = unless(err, a, http.StatusOK); err != nil {
		return got, err
	}
	if got = into[recorded](t, a); got.Status != r.StatusCode || got.ID != id {
		t.Errorf("recorded as %+v, was %d", got, r.StatusCode)
	}
	return got, nil
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
		"no such route":     {"GET", "/v1/nothing/there", key, recorded{Status: 403, Route: "unmapped", Code: "ROUTE_NOT_MAPPED", Key: id}},
		"no such stream":    {"GET", "/v1/streams/none", key, recorded{Status: 404, Route: "streams.get", PathTemplate: "/v1/streams/{id}", Product: "media", Detail: "via_upstream", Key: id}},
		"a good one":        {"GET", "/v1/streams?limit=1", key, recorded{Status: 200, Route: "streams.list", Product: "media", Detail: "via_upstream", Key: id}},
		"a bad path":        {"GET", "/v1/a%2Fb", key, recorded{Status: 400, Code: "invalid_request", Detail: "path_normalization_failed"}},
	} {
		got := s.recordedOf(t, func() response { return call(t, c.method, s.url(c.path), c.key, nil) })
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
	key, id := s.adminKey(t, s.account(t, "local"), "streams:read", "analytics:read")
	s.known(t, key)
	own := s.recordedAs(t, call(t, http.MethodGet, s.url("/v1/streams/none"), key, nil))
	stranger := s.recordedOf(t, func() response { return call(t, http.MethodGet, s.url("/v1/streams/none"), "", nil) })
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

// What a product does not do, or too late, is told by its flags and in a sentence.
func TestFailuresOfAProductAreRecorded(t *testing.T) {
	t.Parallel()
	s, _ := theHarsh(t)
	key := s.dev["SLUICE_API_KEY"]
	for path, want := range map[string]recorded{
		"/v1/harsh/slow":          {Status: 504, Code: "gateway_timeout", Explanation: "did not answer within the route's timeout"},
		"/v1/harsh/bad/no-answer": {Status: 503, Code: "service_unavailable", Explanation: "closed the connection"},
		"/v1/harsh/bad/garbage":   {Status: 502, Code: "bad_gateway", Explanation: "not HTTP"},
	} {
		got := s.recordedOf(t, func() response { return call(t, http.MethodGet, s.url(path), key, nil) })
		if got.Status != want.Status || got.Code != want.Code || !strings.Contains(got.Explanation, want.Explanation) || got.Account == "" || got.Product != "harsh" {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
}

// Nothing of what a client sends in confidence is in any column of any row.
func TestNoSecretIsRecorded(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	_, key := s.keyedAccount(t, "local")
	strange := from(t, "127.0.0.3") // whose failures push nobody else's out of the log
	const secret = "hush-hush-nobody-may-read-this"
	for _, path := range []string{"/v1/streams?token=" + secret, "/v1/streams/none?api_key=" + secret, "/v1/nothing?x=" + secret, "/v1/a%2Fb?x=" + secret, "/v1/auth/validate?" + secret} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for _, credential := range []string{"Bearer " + key, "Bearer " + secret, "Basic " + secret} {
				q, err := http.NewRequest(method, s.url(path), strings.NewReader(`{"password":"`+secret+`"}`))
				if err != nil {
					t.Fatal(err)
				}
				for name, value := range map[string]string{"Authorization": credential, "Cookie": "session=" + secret, "X-Sluice-Identity": "v2;u=media;a=acct_" + secret + ";k=key_" + secret,
					"X-Payment": secret, "Referer": "http://a/?" + secret, "Content-Type": "application/json"} {
					q.Header.Set(name, value)
				}
				res, err := strange.Do(q)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
			}
		}
	}
	s.recordedOf(t, func() response { return call(t, http.MethodGet, s.url("/v1/streams/last?token="+secret), key, nil) })
	conn, err := pgx.Connect(t.Context(), s.env["SLUICE_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var rows, signed int
	var found []string
	err = conn.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE r::text LIKE '%;m=%'), coalesce(array_agg(r::text) FILTER (WHERE strpos(r::text, $1) > 0 OR strpos(r::text, $2) > 0), '{}')
		FROM request_log r`, secret, strings.TrimPrefix(key, "Bearer ")).Scan(&rows, &signed, &found)
	if err != nil || rows == 0 || signed > 0 || len(found) > 0 {
		t.Errorf("%v, of %d rows %d have a signature, and a secret: %s", err, rows, signed, found)
	}
}

// A flood of failures is recorded up to a rate, and what is missing is told; the
// failures of another caller are there.
func TestAFloodOfFailuresIsBounded(t *testing.T) {
	t.Parallel()
	s := lentStack(t)
	account := s.account(t, "local") // what is dropped is told by account
	loud, loudID := s.adminKey(t, account, "streams:read")
	s.known(t, loud)
	const n = 3000
	began := time.Now()
	for range n {
		wantStatus(t, call(t, http.MethodPost, s.url("/v1/streams"), loud, nil), 403)
	}
	s.recordedAs(t, call(t, http.MethodGet, s.url("/v1/streams"), "", nil)) // nobody known, and not pushed out
	var told int64
	eventually(t, "every one is recorded or told of", func() error {
		rows, dropped := 0, int64(0)
		conn, err := pgx.Connect(t.Context(), s.env["SLUICE_DATABASE_URL"])
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		err = conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM request_log WHERE key_id = $1 AND status = 403),
			(SELECT coalesce(sum(dropped), 0) FROM request_log_shares WHERE account_id = $2)`, loudID, account).Scan(&rows, &dropped)
		took := int(time.Since(began)/time.Second) + 2 // the agent may be behind
		if told = dropped; err == nil && (rows > 20*took || int64(rows)+dropped != n) {
			err = fmt.Errorf("%d rows in %d seconds, and %d dropped, of %d", rows, took, dropped, n)
		}
		return err
	})
	_, out, _ := sluice(t, s.dev, "requests", "--status", "403", "--key", loudID, "--limit", "3")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 5 || !strings.Contains(out, fmt.Sprintf("%d more failed", told)) && !strings.Contains(out, "more failed") {
		t.Errorf("%s", out)
	}
}

// What happened while no control plane was there is known when one is back, and so is
// what happens after a restart of Envoy.
func TestTheRequestLogSurvivesRestarts(t *testing.T) {
	t.Parallel()
	s := own(t, nil)
	key, _ := s.newKey(t, "streams:read")
	if err := syscall.Kill(s.child(t, "controlplane"), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	during := call(t, http.MethodGet, s.url("/v1/streams"), "", nil)
	wantStatus(t, during, 401)
	if err := syscall.Kill(s.child(t, "controlplane"), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.recordedAs(t, during)
	if err := syscall.Kill(s.envoy(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var after response
	eventually(t, "another Envoy answers", func() (err error) {
		after, err = try(http.MethodGet, s.url("/v1/streams/none"), key, nil)
		return unless(err, after, 404)
	})
	got := s.recordedAs(t, after)
	if status, out, _ := sluice(t, s.dev, "request", got.ID); status != 0 || !strings.Contains(out, "Product media answered 404.") || !strings.Contains(out, "wait for the upstream") {
		t.Errorf("%d %s", status, out)
	}
	if status, _, errs := sluice(t, s.dev, "request", "none"); status != 1 || !strings.Contains(errs, "No request none is recorded") {
		t.Errorf("%d %s", status, errs)
	}
}

// `sluice requests --follow` prints what happens as it does.
func TestRequestsAreFollowed(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key, id := s.adminKey(t, s.account(t, "local"), "streams:read")
	s.known(t, key)
	p := run(t, s.dev, "requests", "--follow", "--key", id, "--status", "404")
	t.Cleanup(func() { _ = p.Stop() })
	for range 3 {
		r := call(t, http.MethodGet, s.url("/v1/streams/none"), key, nil)
		eventually(t, "the request is printed, once", func() error {
			if n := strings.Count(p.Output(), r.Header.Get("X-Request-Id")); n != 1 {
				return fmt.Errorf("printed %d times: %s", n, p.Output())
			}
			return nil
		})
	}
}
