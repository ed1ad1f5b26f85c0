package e2e

import (
	"net/http"
	"slices"
	"testing"
)

const identityHeader = "X-Sluice-Identity"

// A product sees our identity header or none, whatever a client sends under its
// name.
func TestForgedIdentity(t *testing.T) {
	t.Parallel()
	s, _ := theHarsh(t)
	key := s.dev["SLUICE_API_KEY"]
	forged := "v1.forged"
	for name, headers := range map[string][]string{
		"as it is":        {"X-Sluice-Identity", forged},
		"lower case":      {"x-sluice-identity", forged},
		"upper case":      {"X-SLUICE-IDENTITY", forged},
		"twice":           {"X-Sluice-Identity", forged, "x-sluice-identity", forged + "2"},
		"a list":          {"X-Sluice-Identity", forged + "," + forged},
		"named hop-wise":  {"Connection", "x-sluice-identity", "X-Sluice-Identity", forged},
		"the rewritten":   {"X-Envoy-Original-Path", "/v1/harsh/bare", "X-Sluice-Identity", forged},
		"orders to Envoy": {"X-Envoy-Force-Trace", "1", "X-Envoy-Upstream-Rq-Timeout-Ms", "1", "X-Envoy-Retry-On", "5xx"},
		"of other ours":   {"X-Sluice-Anything", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := call(t, http.MethodGet, s.url("/v1/harsh/open"), "", nil, headers...)
			wantStatus(t, r, http.StatusOK)
			if got := into[seen](t, r).Headers[identityHeader]; len(got) != 0 {
				t.Errorf("nobody known calls, and the product sees %q", got)
			}
			r = call(t, http.MethodGet, s.url("/v1/harsh/echo"), key, nil, headers...)
			wantStatus(t, r, http.StatusOK)
			saw := into[seen](t, r).Headers
			if got := saw[identityHeader]; len(got) != 1 || got[0] == "" || got[0][:9] == forged {
				t.Errorf("the product sees %q", got)
			}
			for _, h := range []string{"Authorization", "X-Envoy-Original-Path", "X-Envoy-Force-Trace", "X-Envoy-Upstream-Rq-Timeout-Ms", "X-Envoy-Retry-On", "X-Sluice-Anything"} {
				if got := saw[h]; len(got) != 0 {
					t.Errorf("the product sees %s: %q", h, got)
				}
			}
		})
	}
	for _, name := range []string{"x_sluice_identity", "X_Sluice_Identity", "X-Sluice_Identity", "x_request_id"} {
		r := s.raw(t, "GET /v1/harsh/open HTTP/1.1\r\nHost: a\r\n"+name+": "+forged+"\r\n\r\n")
		wantError(t, r, 400, "invalid_request")
	}
}

// Who calls and who pays is said once: the edge would judge one value, and a
// product might believe the other.
func TestRepeatedHeaders(t *testing.T) {
	t.Parallel()
	s, _ := theHarsh(t)
	key := s.dev["SLUICE_API_KEY"]
	a, b := "Authorization: Bearer "+key+"\r\n", "authorization: Bearer "+unknownKey+"\r\n"
	for name, headers := range map[string]string{
		"two credentials":          a + b,
		"two, the bad one first":   b + a,
		"the same twice":           a + a,
		"joined":                   "Authorization: Bearer " + key + ", Bearer " + unknownKey + "\r\n",
		"two payments":             a + "X-PAYMENT: a\r\nX-Payment: b\r\n",
		"payments joined":          "X-PAYMENT: a,b\r\n",
		"payments joined, keyless": "x-payment: a, b\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"/v1/harsh/open", "/v1/harsh/echo", "/v1/harsh/bare", "/v1/streams", "/health", "/v1/nothing"} {
				wantError(t, s.raw(t, "GET "+path+" HTTP/1.1\r\nHost: a\r\n"+headers+"\r\n"), 400, "repeated_header")
			}
		})
	}
	r := call(t, http.MethodGet, s.url("/v1/harsh/bare"), key, nil, "X-PAYMENT", "one")
	wantStatus(t, r, http.StatusOK)
	if got := into[seen](t, r).Headers; !slices.Equal(got["Authorization"], []string{"Bearer " + key}) || !slices.Equal(got["X-Payment"], []string{"one"}) {
		t.Errorf("the product sees %v", got)
	}
}
