package accounts

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/platform/http/identity"
)

func TestOwnAllowlist(t *testing.T) {
	t.Parallel()
	b := setup(t)
	needed := ""
	need := func(scope string) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				needed = scope
				next.ServeHTTP(w, r.WithContext(identity.With(r.Context(), identity.Caller{Account: b.account.ID})))
			})
		}
	}
	router := chi.NewRouter()
	API{Store: b.store}.Routes(router, need)
	for _, c := range []struct {
		what, query, body string
		status            int
		then              string // what is read after it
	}{
		{"no list", "", `{"addresses":[]}`, 200, `{"addresses":[]}`},
		{"a list with the caller", "", `{"addresses":["192.0.2.0/24"]}`, 200, `{"addresses":["192.0.2.0/24"]}`},
		{"a list without it", "", `{"addresses":["198.51.100.0/24"]}`, 400, `{"addresses":["192.0.2.0/24"]}`},
		{"not forced", "?force=false", `{"addresses":["2001:db8::/32"]}`, 400, `{"addresses":["192.0.2.0/24"]}`},
		{"forced, perhaps", "?force=1", `{"addresses":["2001:db8::/32"]}`, 400, `{"addresses":["192.0.2.0/24"]}`},
		{"no block, forced", "?force=true", `{"addresses":["here"]}`, 400, `{"addresses":["192.0.2.0/24"]}`},
		{"another field", "", `{"addresses":[],"x":1}`, 400, `{"addresses":["192.0.2.0/24"]}`},
		{"forced", "?force=true", `{"addresses":["198.51.100.7"]}`, 200, `{"addresses":["198.51.100.7/32"]}`},
		{"taken away", "", `{"addresses":[]}`, 200, `{"addresses":[]}`},
	} {
		r := httptest.NewRequest("PUT", "/v1/account/allowlist"+c.query, strings.NewReader(c.body))
		r.Header.Set(identity.AddressHeader, "192.0.2.7")
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		if w.Code != c.status || needed != "users:write" {
			t.Errorf("%s: %d %s, by %s", c.what, w.Code, w.Body, needed)
		}
		w = httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest("GET", "/v1/account/allowlist", nil))
		if got := strings.TrimSpace(w.Body.String()); w.Code != 200 || got != c.then || needed != "users:read" {
			t.Errorf("after %s: %d %s, by %s", c.what, w.Code, got, needed)
		}
	}
}

func TestWhomAListShutsOut(t *testing.T) {
	t.Parallel()
	for caller, allowed := range map[string]bool{
		"192.0.2.7": true, "::ffff:192.0.2.7": true, "2001:db8::1": true, "fe80::1%eth0": true,
		"192.0.3.7": false, "2001:db9::1": false, "unix": false, "": false,
	} {
		list, err := parseAllowlist([]string{"192.0.2.0/24", "2001:db8::/32", "fe80::/10"})
		if err != nil {
			t.Fatal(err)
		}
		if err := checkForce("", list, caller); (err == nil) != allowed {
			t.Errorf("%s: %v", caller, err)
		}
	}
}
