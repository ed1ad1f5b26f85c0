package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/e2e/harness"
)

// client follows no redirects and keeps its connections.
var client = &http.Client{
	Timeout:       30 * time.Second,
	Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// response is an answer, read whole.
type response struct {
	*http.Response
	body  string
	asked time.Time // when a slow request began; zero: just now
}

// envelope is the form of an error (contract 5.1).
type envelope struct {
	Error struct {
		Code, Message string
		RequestID     string `json:"request_id"`
		Docs          string `json:"documentation_url"`
		Details       []struct{ Field, Issue, Expected string }
	}
}

// call makes a request with a credential ("" for none) and an optional JSON body.
func call(t testing.TB, method, url, credential string, body any, headers ...string) response {
	t.Helper()
	r, err := try(method, url, credential, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// try is call for tests that expect failures of the connection.
func try(method, url, credential string, body any, headers ...string) (response, error) {
	a, err := harness.Ask(context.Background(), client, method, url, credential, body, headers...)
	if a.Response == nil {
		return response{}, err
	}
	keepSecret("credential", credential)
	if a.StatusCode == http.StatusCreated || method != http.MethodGet {
		keepAnswer(string(a.Text))
	}
	return response{Response: a.Response, body: string(a.Text)}, err
}

// into decodes a JSON answer.
func into[T any](t testing.TB, r response) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("%d %q: %v", r.StatusCode, r.body, err)
	}
	return v
}

// wantStatus fails unless r has the status.
func wantStatus(t testing.TB, r response, status int) {
	t.Helper()
	if r.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d: %s", r.Request.Method, r.Request.URL.Path, r.StatusCode, status, r.body)
	}
}

// wantError fails unless r is the envelope with status and code, and has the
// headers that every answer has.
func wantError(t testing.TB, r response, status int, code string) {
	t.Helper()
	wantStatus(t, r, status)
	e := into[envelope](t, r).Error
	if e.Code != code || e.Message == "" || !strings.HasSuffix(e.Docs, "/docs/errors/"+code) {
		t.Fatalf("%s %s: %s, want code %s", r.Request.Method, r.Request.URL.Path, r.body, code)
	}
	if e.RequestID == "" || e.RequestID != r.Header.Get("X-Request-ID") {
		t.Fatalf("request id %q in the body, %q in the header", e.RequestID, r.Header.Get("X-Request-ID"))
	}
	wantHeaders(t, r)
}

// wantHeaders fails unless r has the headers of every answer, with sane values.
func wantHeaders(t testing.TB, r response) {
	t.Helper()
	if id := r.Header.Values("X-Request-ID"); len(id) != 1 || id[0] == "" {
		t.Fatalf("X-Request-ID: %q", id)
	}
	limit, remaining, reset := number(t, r, "X-RateLimit-Limit"), number(t, r, "X-RateLimit-Remaining"), number(t, r, "X-RateLimit-Reset")
	now := time.Now()
	counted := now // they say how it was then
	if !r.asked.IsZero() {
		counted = r.asked
	}
	if window := number(t, r, "X-RateLimit-Window"); window != 60 || limit < 1 || remaining > limit || reset < counted.Unix()-5 || reset > now.Unix()+65 {
		t.Fatalf("rate headers: limit %d, remaining %d, reset %d at %d, window %d", limit, remaining, reset, now.Unix(), window)
	}
	for name, want := range map[string]string{"RateLimit-Policy": `;q=` + r.Header.Get("X-RateLimit-Limit") + `;w=60`, "RateLimit": `;r=` + r.Header.Get("X-RateLimit-Remaining") + `;t=`} {
		if got := r.Header.Values(name); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Fatalf("%s is %q, want one with %s", name, got, want)
		}
	}
	if retry := r.Header.Get("Retry-After"); retry != "" && r.StatusCode != 429 && r.StatusCode != 503 {
		t.Fatalf("Retry-After on %d", r.StatusCode)
	}
}

func number(t testing.TB, r response, header string) int64 {
	t.Helper()
	v := r.Header.Values(header)
	if len(v) != 1 {
		t.Fatalf("%s %s: %d: header %s is %q: %s", r.Request.Method, r.Request.URL.Path, r.StatusCode, header, v, r.body)
	}
	n, err := strconv.ParseInt(v[0], 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", header, err)
	}
	return n
}

// eventually calls f until it returns nil. It is for what happens in another
// process that gives no signal.
func eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	if err := harness.Until(f); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
