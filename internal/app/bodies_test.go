package app

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/process/memlimit"
)

func TestHowManyBodies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set   string
		limit int64
		want  int64 // 0: an error
	}{
		{"", memlimit.Unlimited, 512 << 20},
		{"", 512 << 20, 128 << 20},
		{"", 64 << 20, 32 << 20},
		{"5000000", 512 << 20, 5_000_000},
		{"1000000", 512 << 20, 0},
		{"64MiB", 512 << 20, 0},
	} {
		env := Environment{Lookup: func(string) (string, bool) { return c.set, true }}
		got, err := env.maxBodies(c.limit)
		if got != c.want || (err == nil) != (c.want > 0) || err != nil && !strings.Contains(err.Error(), "SLUICE_MAX_BODIES") {
			t.Errorf("%q of %d: %d, %v, want %d", c.set, c.limit, got, err, c.want)
		}
	}
}

// What comes through an edge counts for the account that it signed for, or for the
// client's address; what comes directly for the connection's. The answers are the
// envelope.
func TestWhoseBodiesTheyAre(t *testing.T) {
	t.Parallel()
	secret := []byte("0123456789abcdef0123456789abcdef")
	verifier := identity.Verifier{Secrets: func() [][]byte { return [][]byte{secret} }}
	env := Environment{Lookup: func(string) (string, bool) { return "4194304", true }}
	metrics := prometheus.NewRegistry()
	held, err := env.bodyLimit(metrics, verifier, httpapi.Adapter{DocsBase: "https://docs.test"})
	if err != nil {
		t.Fatal(err)
	}
	signed := httptest.NewRequest(http.MethodPost, "/", nil)
	signed.Header.Set(identityheader.Header, identityheader.Sign(secret, identityheader.Caller{Account: "acct_1", Key: "key_1"}, time.Now().Unix()))
	open := httptest.NewRequest(http.MethodPost, "/", nil)
	open.Header.Set(identity.AddressHeader, "203.0.113.7")
	open.Header.Set(identityheader.Header, "forged")
	for want, r := range map[string]*http.Request{"account acct_1": signed, "address 203.0.113.7": open} {
		if got := held.caller(r); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	all := func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if strings.HasPrefix(r.RemoteAddr, "192.0.2.1") { // another, while this one's is in flight
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x"))
			r.RemoteAddr, r.Header = "192.0.2.2:1", http.Header{identity.AddressHeader: {"192.0.2.1"}}
			again := httptest.NewRecorder()
			held.direct(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) })).ServeHTTP(again, r)
			refused(t, again, http.StatusServiceUnavailable, "service_unavailable")
			r = httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x"))
			r.RemoteAddr = "192.0.2.1:2"
			again = httptest.NewRecorder()
			held.direct(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) })).ServeHTTP(again, r)
			refused(t, again, http.StatusTooManyRequests, "rate_limit_exceeded")
			if err := testutil.GatherAndCompare(metrics, strings.NewReader("# HELP sluice_bodies_bytes Bytes of request bodies that are in flight.\n# TYPE sluice_bodies_bytes gauge\nsluice_bodies_bytes 4.194304e+06\n"), "sluice_bodies_bytes"); err != nil {
				t.Error(err)
			}
		}
	}
	ask := func(n int) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", n))), httptest.NewRecorder()
		r.RemoteAddr = "192.0.2.1:1"
		held.direct(http.HandlerFunc(all)).ServeHTTP(w, r)
		return w
	}
	if w := ask(4 << 20); w.Code != http.StatusOK {
		t.Error(w.Code)
	}
	refused(t, ask(4<<20+1), http.StatusRequestEntityTooLarge, "request_too_large")
}

func refused(t *testing.T, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	var body struct{ Error struct{ Code string } }
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatal(w.Code, err)
	}
	if w.Code != status || body.Error.Code != code || status != http.StatusRequestEntityTooLarge && w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %s, Retry-After %q; want %d %s", w.Code, body.Error.Code, w.Header().Get("Retry-After"), status, code)
	}
}

// Envoy refuses work before its container ends it.
func TestEnvoysHeap(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int64]uint64{memlimit.Unlimited: 0, 8 << 30: 0, 1000 << 20: 600 << 20, 128 << 20: 256 << 20} {
		if got := envoyHeap(limit); got != want {
			t.Errorf("of %d: %d, want %d", limit, got, want)
		}
	}
}
