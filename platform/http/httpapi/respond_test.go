package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

var quiet = Adapter{DocsBase: "https://gw", Log: slog.New(slog.NewTextHandler(io.Discard, nil))}

func answer(t *testing.T, err error) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/v1/x", nil)
	r.Header.Set(RequestIDHeader, "req-1")
	w := httptest.NewRecorder()
	quiet.Handle(func(http.ResponseWriter, *http.Request) error { return err })(w, r)
	return w
}

// The runtime's envelope and the one that the filters write by hand must not drift apart.
func TestEnvelopeIsTheFiltersEnvelope(t *testing.T) {
	t.Parallel()
	for _, info := range decision.All() {
		d := decision.Decision{Code: info.Code, Detail: decision.Detail{Field: "scope", Issue: "is missing \"x\"", Expected: "a:b"}}
		w := answer(t, &apierror.Error{Code: info.Code, Details: []decision.Detail{d.Detail}})
		want := string(decision.AppendEnvelope(nil, d, "req-1", "https://gw"))
		if got := strings.TrimSpace(w.Body.String()); got != want {
			t.Errorf("%s:\n got %s\nwant %s", info.Code, got, want)
		}
		if info.Status != 0 && w.Code != info.Status {
			t.Errorf("%s: status %d, want %d", info.Code, w.Code, info.Status)
		}
		if !json.Valid(w.Body.Bytes()) || w.Header().Get(RequestIDHeader) != "req-1" {
			t.Errorf("%s: not JSON, or no request id", info.Code)
		}
	}
}

func TestForeignErrorShowsNothingOfItself(t *testing.T) {
	t.Parallel()
	w := answer(t, errors.New("dial tcp 10.0.0.1: password=hunter2"))
	if w.Code != 500 || strings.Contains(w.Body.String(), "hunter2") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

func TestRetryAfterIsSent(t *testing.T) {
	t.Parallel()
	w := answer(t, &apierror.Error{Code: decision.Unavailable, RetryAfter: 7})
	if w.Code != 503 || w.Header().Get("Retry-After") != "7" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
}

type inner struct {
	N int `json:"n"`
}

type target struct {
	Name  string    `json:"name"`
	Count *int      `json:"count"`
	Tags  []string  `json:"tags"`
	At    time.Time `json:"at"`
	In    inner     `json:"in"`
}

func decode(body, contentType string, limit int64) (target, error) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	var v target
	err := Decode(httptest.NewRecorder(), r, limit, &v)
	return v, err
}

func TestDecodeNamesEveryBadFieldAtOnce(t *testing.T) {
	t.Parallel()
	_, err := decode(`{"name":1,"count":"x","tags":{},"at":"soon","in":{"m":1},"what":1}`, "application/json", 0)
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || e.Code != decision.InvalidRequest {
		t.Fatal(err)
	}
	want := []decision.Detail{
		{Field: "at", Issue: "is not valid", Expected: "ISO 8601 timestamp"},
		{Field: "count", Issue: "has the wrong type: string", Expected: "integer"},
		{Field: "in.m", Issue: "is not a known field", Expected: "one of n"},
		{Field: "name", Issue: "has the wrong type: number", Expected: "string"},
		{Field: "tags", Issue: "has the wrong type: object", Expected: "array of string"},
		{Field: "what", Issue: "is not a known field", Expected: "one of at, count, in, name, tags"},
	}
	if diff := cmp.Diff(want, e.Details); diff != "" {
		t.Fatal(diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		body, contentType string
		limit             int64
		want              decision.Code
	}{
		"nothing":        {"", "", 0, decision.InvalidRequest},
		"an array":       {"[]", "", 0, decision.InvalidRequest},
		"null":           {"null", "", 0, decision.InvalidRequest},
		"half an object": {`{"name":`, "", 0, decision.InvalidRequest},
		"two values":     {`{} {}`, "", 0, decision.InvalidRequest},
		"a name twice":   {`{"name":"a","name":"b"}`, "", 0, decision.InvalidRequest},
		"twice, deeper":  {`{"in":{"n":1,"n":2}}`, "", 0, decision.InvalidRequest},
		"too deep":       {`{"tags":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "", 0, decision.InvalidRequest},
		"too large":      {`{"name":"aaaaaaaaaa"}`, "", 8, decision.TooLarge},
		"a form":         {`name=a`, "application/x-www-form-urlencoded", 0, decision.MediaType},
	}
	for name, c := range cases {
		if _, err := decode(c.body, c.contentType, c.limit); apierror.Code(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// A body that is compressed is refused by the name of its encoding, whatever is in it.
func TestEncodedBodiesAreRefusedByName(t *testing.T) {
	t.Parallel()
	for encoding, want := range map[string]decision.Code{"": "", "identity": "", "Identity": "", "gzip": decision.MediaType, "br": decision.MediaType, "identity, gzip": decision.MediaType} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"name":"a"}`))
		if encoding != "" {
			r.Header["Content-Encoding"] = strings.Split(encoding, ", ")
		}
		err := Decode(httptest.NewRecorder(), r, 0, new(target))
		if apierror.Code(err) != want {
			t.Errorf("%q: %v", encoding, err)
		}
		if e, ok := errors.AsType[*apierror.Error](err); ok && (!strings.Contains(e.Message, "encoded as "+encoding+": send it as it is, without Content-Encoding") || e.Details[0].Field != "Content-Encoding") {
			t.Errorf("%q: %+v", encoding, e)
		}
	}
	_, err := decode(`name=a`, "application/x-www-form-urlencoded", 0)
	if e, ok := errors.AsType[*apierror.Error](err); !ok || len(e.Details) != 1 || e.Details[0].Field != "Content-Type" || e.Details[0].Expected != "application/json" {
		t.Errorf("a form: %v", err)
	}
}

// described is a description by which everything lacks name and more, and tags of two are
// too few.
type described struct{}

func (described) Faults(method, pattern string, raw []byte) []decision.Detail {
	if method != http.MethodPut || pattern != "/v1/things/{id}" || !strings.HasPrefix(string(raw), "{") {
		return nil
	}
	return []decision.Detail{{Field: "name", Issue: "is missing", Expected: "a value"}, {Field: "more", Issue: "is missing", Expected: "a value"},
		{Field: "in", Issue: "is no alternative", Expected: "another"}, {Field: "tags[1].x", Issue: "is missing", Expected: "a value"}}
}

func (described) Parameters(method, pattern string) ([]string, bool) {
	return []string{"limit", "sort"}, method == http.MethodPut && pattern == "/v1/things/{id}"
}

// What is wrong with the values of a body is told beside what could not be read of it.
func TestBodiesAreHeldAgainstTheirDescription(t *testing.T) {
	t.Parallel()
	a := Adapter{Bodies: described{}}
	r := a.Router()
	r.Route("/v1/things", func(r chi.Router) {
		r.Put("/{id}", Handle(a, http.StatusOK, func(_ *http.Request, in target) (target, error) { return in, nil }))
	})
	for body, want := range map[string]string{
		`{"what":1,"in":{"m":1},"tags":[1,2]}`: "in.m more name tags[0] tags[1] what",
		`{"name":7}`:                           "in more name tags[1].x",
		`{"name":"a"}`:                         "", // whose values are for the handler
		`[]`:                                   "body",
		`{"what":1} x`:                         "body",
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/v1/things/7", strings.NewReader(body)))
		var said struct {
			Error struct{ Details []decision.Detail }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range said.Error.Details {
			got = append(got, d.Field)
		}
		if strings.Join(got, " ") != want || (w.Code == 200) != (want == "") {
			t.Errorf("%s: %d %s, want %s", body, w.Code, w.Body, want)
		}
	}
}

func TestDecodeAccepts(t *testing.T) {
	t.Parallel()
	v, err := decode(`{"name":"a","count":3,"tags":["x"],"at":"2026-01-02T03:04:05Z","in":{"n":1}}`, "application/json; charset=utf-8", 0)
	if err != nil || v.Name != "a" || *v.Count != 3 || v.In.N != 1 || v.At.Year() != 2026 {
		t.Fatalf("%+v %v", v, err)
	}
}

// The database refuses what no text may hold: that is the caller's fault.
func TestCharactersThatCannotBeStored(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{"22021": 400, "22P05": 400, "23505": 500} {
		w := httptest.NewRecorder()
		Adapter{}.Error(w, httptest.NewRequest(http.MethodPost, "/", nil), fmt.Errorf("store: %w", &pgconn.PgError{Code: code}))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", code, w.Code, want)
		}
	}
}

// Parameters that an operation does not have are refused by name, with those that it has.
func TestParametersThatAreNotKnownAreRefused(t *testing.T) {
	t.Parallel()
	a := Adapter{Bodies: described{}}
	r := a.Router()
	echo := Handle(a, http.StatusOK, func(*http.Request, None) (None, error) { return None{}, nil })
	r.Put("/v1/things/{id}", echo)
	r.Get("/v1/things/{id}", echo) // which takes any
	for target, want := range map[string]string{
		"PUT /v1/things/7?limit=1&sort=a":              "",
		"PUT /v1/things/7":                             "",
		"GET /v1/things/7?page=2":                      "",
		"PUT /v1/things/7?page=2&limit=1&Limit=2":      "Limit is not a known parameter, one of limit, sort; page is not a known parameter, one of limit, sort; ",
		"PUT /v1/things/7?" + strings.Repeat("x", 500): strings.Repeat("x", 97) + "… is not a known parameter, one of limit, sort; ",
	} {
		method, path, _ := strings.Cut(target, " ")
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		var said struct {
			Error struct{ Details []decision.Detail }
		}
		_ = json.Unmarshal(w.Body.Bytes(), &said) // of 204 there is none
		got := ""
		for _, d := range said.Error.Details {
			got += d.Field + " " + d.Issue + ", " + d.Expected + "; "
		}
		if got != want || (w.Code == 204) != (want == "") {
			t.Errorf("%s: %d %s, want %s", target, w.Code, w.Body, want)
		}
	}
}

// What is not there is named by what it would be, and by what was asked for.
func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	a := Adapter{}
	r := a.Router()
	none := Handle(a, http.StatusOK, func(*http.Request, None) (None, error) { return None{}, &apierror.Error{Code: decision.NotFound} })
	for _, pattern := range []string{"/v1/streams/{id}", "/v1/vod/{id}/captions/{lang}", "/v1/webhooks/{id}/deliveries/{delivery}", "/v1/webhooks/{id}/test",
		"/admin/v1/accounts/{account}/keys", "/v1/billing/subscription", "/v1/playback/{playback}/{file}", "/v1/dante/inputs/{id}"} {
		r.Get(pattern, none)
	}
	for path, want := range map[string]string{
		"/v1/streams/strm_1":                       "No stream strm_1 in this account.",
		"/v1/vod/vod_1/captions/en":                "No captions en of video vod_1 in this account.",
		"/v1/webhooks/wh_1/deliveries/d_1":         "No delivery d_1 of webhook wh_1 in this account.",
		"/v1/webhooks/wh_1/test":                   "No webhook wh_1 in this account.",
		"/admin/v1/accounts/acct_1/keys":           "No account acct_1.",
		"/v1/dante/inputs/link_1":                  "No input link_1 in this account.",
		"/v1/billing/subscription":                 "There is no such resource.",
		"/v1/playback/play_1/index.m3u8":           "There is no such resource.",
		"/v1/elsewhere/1":                          "There is no such resource.",
		"/v1/streams/" + strings.Repeat("x", 5000): "No stream " + strings.Repeat("x", 97) + "… in this account.",
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		var said struct{ Error struct{ Message string } }
		if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || w.Code != 404 || said.Error.Message != want {
			t.Errorf("%s: %d %v %s, want %s", path, w.Code, err, w.Body, want)
		}
	}
}
