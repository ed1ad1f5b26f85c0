package api

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/seed"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/web/openapi/openapitest"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

type bundle struct {
	db            *pgxpool.Pool
	seeded        seed.Result
	public, admin http.Handler // the answers of public are held against its description
	routes        chi.Routes   // of public
}

func setup(t *testing.T) bundle {
	t.Helper()
	db := pgtest.Pool(t)
	s := sessions.New(sessions.Config{DB: db, Issuer: "http://gw", Audience: "http://gw"})
	seeded, err := seed.Local(t.Context(), db, seed.Config{Sessions: s})
	if err != nil {
		t.Fatal(err)
	}
	boom := func(r chi.Router, _ httpapi.Adapter) {
		r.Get("/boom", func(http.ResponseWriter, *http.Request) { panic("boom") })
	}
	c := Config{
		DB: db, Sessions: s, Region: "test", Version: "1.2.3", Open: []Routes{boom}, Admin: []Routes{boom},
		Respond:  httpapi.Adapter{Log: slog.New(slog.NewTextHandler(io.Discard, nil))},
		Identity: identity.Verifier{Secrets: func() [][]byte { return [][]byte{secret} }},
	}
	public := Public(c)
	return bundle{db, seeded, openapitest.New(t, OpenAPI).Handler(t, public), Admin(c), public.(chi.Routes)}
}

type header map[string]string

func bearer(token string) header { return header{"Authorization": "Bearer " + token} }

func call(h http.Handler, method, path, body string, headers ...header) (*httptest.ResponseRecorder, map[string]any) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, m := range headers {
		for k, v := range m {
			r.Header.Set(k, v)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var v map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &v)
	return w, v
}

func code(v map[string]any) any {
	e, _ := v["error"].(map[string]any)
	return e["code"]
}

func TestASessionMakesAKeyThatValidates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w, made := call(b.public, "POST", "/v1/auth/keys", `{"name":"ci","scopes":["streams:read"],"expires_in_days":90}`, bearer(b.seeded.SessionToken))
	if w.Code != 201 || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatal(w.Code, made)
	}
	id := made["id"].(string)
	signed := identityheader.Sign(secret, identityheader.Caller{Account: b.seeded.Account, Key: id}, time.Now().Unix())
	w, got := call(b.public, "GET", "/v1/auth/validate", "", header{identityheader.Header: signed})
	if w.Code != 200 || got["valid"] != true || got["key_id"] != id || got["expires_at"] != made["expires_at"] {
		t.Fatal(w.Code, got)
	}
}

func TestWhoMayCallWhat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	api, admin, session := bearer(b.seeded.APIKey), bearer(b.seeded.AdminKey), bearer(b.seeded.SessionToken)
	for _, c := range []struct {
		h            http.Handler
		method, path string
		with         header
		want         int
		code         any
	}{
		{b.public, "GET", "/v1/auth/keys", session, 200, nil},
		{b.public, "GET", "/v1/auth/keys", api, 401, "invalid_token"},
		{b.public, "GET", "/v1/auth/keys", admin, 401, "invalid_token"},
		{b.public, "GET", "/v1/auth/keys", nil, 401, "authentication_required"},
		{b.public, "GET", "/v1/auth/validate", api, 401, "authentication_required"},
		{b.public, "GET", "/v1/auth/validate", header{identityheader.Header: "v1;a=x"}, 401, "authentication_required"},
		{b.public, "GET", "/v1/health", nil, 200, nil},
		{b.public, "GET", "/origin-health", nil, 200, nil},
		{b.public, "GET", "/.well-known/jwks.json", nil, 200, nil},
		{b.public, "GET", "/v1/billing/usage", session, 200, nil},
		{b.public, "GET", "/v1/billing/invoices", session, 200, nil},
		{b.public, "GET", "/v1/billing/subscription", nil, 401, "authentication_required"},
		{b.admin, "GET", "/admin/v1/plans", admin, 200, nil},
		{b.admin, "GET", "/admin/v1/audit", api, 403, "AUTH_002"},
		{b.public, "GET", "/admin/v1/accounts", admin, 404, "not_found"},
		{b.public, "PUT", "/v1/auth/keys", session, 405, "method_not_allowed"},
		{b.public, "GET", "/boom", nil, 500, "internal"},
		{b.admin, "GET", "/admin/v1/accounts", admin, 200, nil},
		{b.admin, "GET", "/admin/v1/accounts", api, 403, "AUTH_002"},
		{b.admin, "GET", "/admin/v1/accounts", session, 401, "invalid_api_key"},
		{b.admin, "GET", "/admin/v1/accounts", nil, 401, "authentication_required"},
		{b.admin, "GET", "/admin/v1/nothing", admin, 404, "not_found"},
		{b.admin, "GET", "/admin/v1/boom", admin, 500, "internal"},
		{b.admin, "GET", "/health", nil, 200, nil},
	} {
		if w, got := call(c.h, c.method, c.path, "", c.with); w.Code != c.want || code(got) != c.code {
			t.Errorf("%s %s %v: %d %v, want %d %v", c.method, c.path, c.with, w.Code, code(got), c.want, c.code)
		}
	}
}

// A key with scope * of an account that is not the operator's is everything
// there, and nothing here.
func TestAnotherAccountsStarIsNoOperator(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a, err := accounts.Store{DB: b.db}.Create(t.Context(), "B", "pro")
	if err != nil {
		t.Fatal(err)
	}
	k, err := apikeys.Store{DB: b.db}.Create(t.Context(), apikeys.Spec{Account: a.ID, Name: "k", Scopes: []string{"*"}, Creator: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	if w, got := call(b.admin, "GET", "/admin/v1/accounts", "", bearer(k.Text)); w.Code != 403 || code(got) != "AUTH_002" {
		t.Fatal(w.Code, got)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, got := call(b.public, "GET", "/v1/health", "")
	if ms, ok := got["latency_ms"].(float64); !ok || ms != float64(int(ms)) || got["status"] != "ok" || got["region"] != "test" || got["version"] != "1.2.3" {
		t.Fatal(got)
	}
	b.db.Close()
	if w, got := call(b.public, "GET", "/v1/health", ""); w.Code != 503 || w.Header().Get("Retry-After") == "" || code(got) != "service_unavailable" {
		t.Fatal(w.Code, got)
	}
}

func TestAllowNamesTheMethods(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w, _ := call(b.public, "PUT", "/v1/auth/keys/key_1", "")
	if got := strings.Join(w.Header().Values("Allow"), " "); got != "DELETE GET HEAD PATCH" {
		t.Fatal(got)
	}
}

func TestARepeatedCreationMakesOneKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	with, once := bearer(b.seeded.SessionToken), header{"Idempotency-Key": "4b1c"}
	body := `{"name":"ci","scopes":["streams:read"]}`
	_, first := call(b.public, "POST", "/v1/auth/keys", body, with, once)
	w, again := call(b.public, "POST", "/v1/auth/keys", body, with, once)
	if w.Code != 201 || again["key"] != first["key"] || w.Header().Get("Idempotent-Replayed") != "true" || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatal(w.Code, first, again, w.Header())
	}
	if w, got := call(b.public, "POST", "/v1/auth/keys", `{"name":"other","scopes":["streams:read"]}`, with, once); w.Code != 422 {
		t.Fatal(w.Code, got)
	}
	if _, list := call(b.public, "GET", "/v1/auth/keys", "", with); list["pagination"].(map[string]any)["total"] != 3.0 { // two are seeded
		t.Fatal(list)
	}
	if w, _ := call(b.admin, "POST", "/admin/v1/accounts", `{"name":"B","plan":"pro"}`, bearer(b.seeded.AdminKey), once); w.Code != 201 {
		t.Fatal(w.Code)
	}
}

// People manage their team by session, programs by the identity that the edge
// signed; either needs the scope.
func TestTheTeamBySessionAndByKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	by := func(scopes ...string) header {
		c := identityheader.Caller{Account: b.seeded.Account, Key: "key_1", Scopes: scopes}
		return header{identityheader.Header: identityheader.Sign(secret, c, time.Now().Unix())}
	}
	body := `{"email":"ann@example.com","role":"member"}`
	for _, c := range []struct {
		method, body string
		with         header
		want         int
	}{
		{"GET", "", bearer(b.seeded.SessionToken), 200},
		{"GET", "", by("users:read"), 200},
		{"GET", "", by("streams:read"), 403},
		{"GET", "", bearer(b.seeded.APIKey), 401},
		{"GET", "", nil, 401},
		{"POST", body, by("users:read"), 403},
		{"POST", body, by("users:write"), 201},
		{"POST", body, bearer(b.seeded.SessionToken), 409},
	} {
		if w, got := call(b.public, c.method, "/v1/users", c.body, c.with); w.Code != c.want {
			t.Errorf("%s %v: %d %v, want %d", c.method, c.with, w.Code, got, c.want)
		}
	}
}

func TestSelf(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if w, got := call(b.admin, "GET", "/admin/v1/self", "", bearer(b.seeded.AdminKey)); w.Code != 200 || got["account"] != b.seeded.Account {
		t.Fatal(w.Code, got)
	}
}

func TestOperatorsMakeSessions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w, s := call(b.admin, "POST", "/admin/v1/sessions", `{"email":"`+b.seeded.Email+`"}`, bearer(b.seeded.AdminKey))
	if w.Code != 201 {
		t.Fatal(w.Code, s)
	}
	if w, got := call(b.public, "GET", "/v1/auth/keys", "", bearer(s["token"].(string))); w.Code != 200 {
		t.Fatal(w.Code, got)
	}
	if w, got := call(b.admin, "POST", "/admin/v1/sessions", `{"email":"nobody@example.com"}`, bearer(b.seeded.AdminKey)); w.Code != 400 {
		t.Fatal(w.Code, got)
	}
}

// Operators call the admin API without an edge before it: it gives requests their ids.
func TestAdminAnswersSayTheirRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, given := range []string{"", "mine-1"} {
		w, got := call(b.admin, "GET", "/admin/v1/accounts/nope", "", bearer(b.seeded.AdminKey), header{"X-Request-ID": given})
		id := w.Header().Get("X-Request-ID")
		if id == "" || given != "" && id != given || got["error"].(map[string]any)["request_id"] != id {
			t.Errorf("given %q: %d %q %v", given, w.Code, id, got)
		}
	}
}
