package sessions

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

func (b bundle) serve() http.Handler {
	a := API{Service: b.service}
	r := chi.NewRouter()
	a.Routes(r)
	r.Group(func(r chi.Router) {
		r.Use(a.Require)
		a.OwnRoutes(r)
		r.Get("/whoami", func(w http.ResponseWriter, r *http.Request) {
			c, _ := identity.From(r.Context())
			httpapi.JSON(w, 200, c)
		})
	})
	return r
}

func call(h http.Handler, method, path, body string, authorization ...string) (int, map[string]any) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header["Authorization"] = authorization
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var v map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &v)
	return w.Code, v
}

func TestSignInUseAndEndOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := b.serve()
	status, s := call(h, "POST", "/v1/auth/sessions", `{"email":"ann@example.com","password":"`+password+`"}`)
	if status != 201 || s["token_type"] != "Bearer" || s["expires_in"] != 3600.0 {
		t.Fatal(status, s)
	}
	bearer := "Bearer " + s["token"].(string)
	if status, c := call(h, "GET", "/whoami", "", bearer); status != 200 || c["Account"] != b.user.Account || c["Key"] != s["id"] {
		t.Fatal(status, c)
	}
	if status, _ := call(h, "DELETE", "/v1/auth/sessions/current", "", bearer); status != 204 {
		t.Fatal(status)
	}
	if status, _ := call(h, "GET", "/whoami", "", bearer); status != 401 {
		t.Fatal("after its end:", status)
	}
}

func TestRefusedOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := b.serve()
	good := "Bearer " + b.signIn(t).Token
	for name, c := range map[string]struct {
		method, path, body string
		authorization      []string
		want               int
		code               string
	}{
		"wrong password":    {"POST", "/v1/auth/sessions", `{"email":"ann@example.com","password":"wrong"}`, nil, 401, "authentication_required"},
		"no fields":         {"POST", "/v1/auth/sessions", `{}`, nil, 400, "invalid_request"},
		"a long password":   {"POST", "/v1/auth/sessions", `{"email":"a@b","password":"` + strings.Repeat("a", 1025) + `"}`, nil, 400, "invalid_request"},
		"a long body":       {"POST", "/v1/auth/sessions", strings.Repeat(" ", bodyLimit+1), nil, 413, "request_too_large"},
		"no token":          {"GET", "/whoami", "", nil, 401, "authentication_required"},
		"not a token":       {"GET", "/whoami", "", []string{"Bearer x"}, 401, "invalid_token"},
		"an API key":        {"GET", "/whoami", "", []string{"Bearer " + apikey.FormatKey(1, [apikey.SecretBytes]byte{})}, 401, "invalid_token"},
		"two authorization": {"GET", "/whoami", "", []string{good, good}, 401, "invalid_api_key"},
	} {
		status, got := call(h, c.method, c.path, c.body, c.authorization...)
		e, _ := got["error"].(map[string]any)
		if status != c.want || e["code"] != c.code {
			t.Errorf("%s: %d %v, want %d %s", name, status, e, c.want, c.code)
		}
	}
}

func TestKeySet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	status, set := call(b.serve(), "GET", "/.well-known/jwks.json", "")
	keys, _ := set["keys"].([]any)
	if status != 200 || len(keys) != 1 {
		t.Fatal(status, set)
	}
	k := keys[0].(map[string]any)
	if k["kty"] != "EC" || k["crv"] != "P-256" || k["alg"] != "ES256" || k["use"] != "sig" || k["d"] != nil || len(k["x"].(string)) != 43 {
		t.Fatal(k)
	}
}
