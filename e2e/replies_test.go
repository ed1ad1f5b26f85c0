package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Whatever Envoy answers in place of a product has the envelope, the request id
// and the caller's true rate headers.
func TestEnvoyAnswersForAProduct(t *testing.T) {
	t.Parallel()
	s, _ := theHarsh(t)
	key := s.dev["SLUICE_API_KEY"]
	for name, c := range map[string]struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		"the body is too large":              {http.MethodPost, "/v1/harsh/capped", strings.Repeat("a", 100<<10), 413, "request_too_large"},
		"the answer is no HTTP":              {http.MethodGet, "/v1/harsh/bad/garbage", nil, 502, "bad_gateway"},
		"the answer has two lengths":         {http.MethodGet, "/v1/harsh/bad/two-lengths", nil, 502, "bad_gateway"},
		"the answer has length and chunks":   {http.MethodGet, "/v1/harsh/bad/both-lengths", nil, 502, "bad_gateway"},
		"the answer's headers are too large": {http.MethodGet, "/v1/harsh/bad/huge-headers", nil, 502, "bad_gateway"},
		"the product hangs up":               {http.MethodGet, "/v1/harsh/bad/no-answer", nil, 503, "service_unavailable"},
		"it hangs up half-way":               {http.MethodGet, "/v1/harsh/bad/half-a-header", nil, 502, "bad_gateway"},
		"it takes too long":                  {http.MethodGet, "/v1/harsh/slow", nil, 504, "gateway_timeout"},
		"it takes too long for an upload":    {http.MethodPost, "/v1/harsh/slow", "x", 504, "gateway_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := call(t, c.method, s.url(c.path), key, c.body)
			wantError(t, r, c.status, c.code)
			if limit := number(t, r, "X-RateLimit-Limit"); limit != 1_000_000 {
				t.Errorf("X-RateLimit-Limit is %d, not the account's", limit)
			}
			if retry := r.Header.Get("Retry-After"); (c.status == 503) != (retry != "") {
				t.Errorf("Retry-After is %q", retry)
			}
		})
	}
}

// Who sends too slowly is told so, and holds up nobody.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	s, _ := theHarsh(t)
	finish := s.bystander(t)
	defer finish()
	key := "Authorization: Bearer " + s.dev["SLUICE_API_KEY"] + "\r\n"
	slow := map[string]string{
		"headers that do not end":    "GET /v1/harsh/open HTTP/1.1\r\nHost: a\r\nX-Slow: ",
		"a request line without end": "GET /v1/har",
		"a body that does not end":   "POST /v1/harsh/echo HTTP/1.1\r\nHost: a\r\n" + key + "Content-Length: 100\r\n\r\nabc",
		"chunks that do not end":     "POST /v1/harsh/echo HTTP/1.1\r\nHost: a\r\n" + key + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		"a body held for the caps":   "POST /v1/harsh/capped HTTP/1.1\r\nHost: a\r\n" + key + "Content-Length: 100\r\n\r\nabc",
	}
	// All at once, and not as parallel tests: those take turns on few processors.
	answers := make(chan slowAnswer, len(slow))
	for name, text := range slow {
		go func() {
			r, err := rawly(s.front(), text, 2*time.Minute)
			answers <- slowAnswer{name, r, err}
		}()
	}
	for range slow {
		a := <-answers
		t.Run(a.name, func(t *testing.T) {
			if a.err != nil {
				t.Fatal(a.err)
			}
			wantError(t, a.response, 408, "request_timeout")
		})
	}
}

type slowAnswer struct {
	name string
	response
	err error
}
