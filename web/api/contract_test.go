package api

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

// byKey is what an edge says of a program with scopes.
func byKey(account string, scopes ...string) header {
	c := identityheader.Caller{Account: account, Key: "key_0000000000001", Scopes: scopes}
	return header{identityheader.Header: identityheader.Sign(secret, c, time.Now().Unix())}
}

// route is one that reads a JSON body.
type route struct{ method, path, good string }

// bodies are the routes that read a JSON body, each with one that is good.
func (b bundle) bodies(t *testing.T) (public, admin []route) {
	t.Helper()
	_, key := call(b.public, "POST", "/v1/auth/keys", `{"name":"k","scopes":["streams:read"]}`, bearer(b.seeded.SessionToken))
	_, user := call(b.public, "POST", "/v1/users", `{"email":"x@example.com","role":"member"}`, bearer(b.seeded.SessionToken))
	_, method := call(b.public, "POST", "/v1/billing/payment-methods", `{"token":"pm_1"}`, bearer(b.seeded.SessionToken))
	account := "/admin/v1/accounts/" + b.seeded.Account
	public = []route{
		{"POST", "/v1/auth/sessions", `{"email":"a@example.com","password":"x"}`},
		{"POST", "/v1/auth/keys", `{"name":"k","scopes":["streams:read"]}`},
		{"PATCH", "/v1/auth/keys/" + key["id"].(string), `{"name":"n"}`},
		{"POST", "/v1/auth/keys/" + key["id"].(string) + "/rotate", `{"overlap_seconds":1}`},
		{"POST", "/v1/auth/invitations/accept", `{"token":"t","password":"correct horse"}`},
		{"POST", "/v1/users", `{"email":"y@example.com","role":"member"}`},
		{"PATCH", "/v1/users/" + user["id"].(string), `{"role":"member"}`},
		{"PATCH", "/v1/billing/subscription", `{"plan":"pro"}`},
		{"POST", "/v1/billing/payment-methods", `{"token":"pm_1"}`},
		{"PATCH", "/v1/billing/payment-methods/" + method["id"].(string), `{"default":true}`},
	}
	admin = []route{
		{"POST", "/admin/v1/sessions", `{"email":"` + b.seeded.Email + `"}`},
		{"POST", "/admin/v1/accounts", `{"name":"B","plan":"pro"}`},
		{"PATCH", account, `{"name":"B"}`},
		{"POST", account + "/keys", `{"name":"k","scopes":["*"]}`},
		{"PUT", account + "/limits/events", `{"per_minute":5}`},
		{"POST", account + "/users", `{"email":"z@example.com","role":"member","password":"correct horse"}`},
		{"POST", account + "/invoices", `{"invoices":[]}`},
		{"PATCH", "/admin/v1/plans/pro", `{"self_serve":true}`},
	}
	return public, admin
}

// Whatever stands in a body, the answer is a 4xx with the envelope.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	public, admin := b.bodies(t)
	json := header{"Content-Type": "application/json", "X-Request-ID": "req-9"}
	check := func(h http.Handler, r route, with header) {
		for name, c := range map[string]struct {
			body string
			with header
			want int
			code string
		}{
			"not JSON":         {`{"name":`, json, 400, "invalid_request"},
			"an array":         {`[]`, json, 400, "invalid_request"},
			"null":             {`null`, json, 400, "invalid_request"},
			"an unknown field": {`{"surprise":1,` + r.good[1:], json, 400, "invalid_request"},
			"a name twice":     {strings.TrimSuffix(r.good, "}") + `,` + r.good[1:], json, 400, "invalid_request"},
			"too large":        {strings.Repeat(" ", 2<<20), json, 413, "request_too_large"},
			"a form":           {`a=b`, header{"Content-Type": "application/x-www-form-urlencoded"}, 415, "unsupported_media_type"},
		} {
			w, got := call(h, r.method, r.path, c.body, with, c.with)
			e, _ := got["error"].(map[string]any)
			if w.Code != c.want || e["code"] != c.code || e["message"] == "" || e["documentation_url"] == nil || e["request_id"] == nil {
				t.Errorf("%s %s, %s: %d %v, want %d %s", r.method, r.path, name, w.Code, got, c.want, c.code)
			}
		}
	}
	for _, r := range public {
		check(b.public, r, bearer(b.seeded.SessionToken))
	}
	for _, r := range admin {
		check(b.admin, r, bearer(b.seeded.AdminKey))
	}
}

// Nothing of account A can be seen or changed from account B: it is not there.
func TestAccountsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other, err := accounts.Store{DB: b.db}.Create(t.Context(), "B", "pro")
	if err != nil {
		t.Fatal(err)
	}
	public, _ := b.bodies(t)
	stranger := byKey(other.ID, "*")
	hash, err := sessions.HashPassword(t.Context(), "correct horse", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (accounts.Store{DB: b.db}).AddUser(t.Context(), other.ID, "b@example.com", accounts.Owner, hash); err != nil {
		t.Fatal(err)
	}
	_, s := call(b.public, "POST", "/v1/auth/sessions", `{"email":"b@example.com","password":"correct horse"}`)
	strangersSession := bearer(s["token"].(string))
	seen := 0
	for _, r := range public {
		if strings.Count(r.path, "/") < 3 || !strings.Contains(r.path, "key_") && !strings.Contains(r.path, "user_") {
			continue
		}
		seen++
		with := strangersSession
		if strings.Contains(r.path, "user_") {
			with = stranger
		}
		for _, method := range []string{r.method, "GET", "DELETE"} {
			w, got := call(b.public, method, r.path, r.good, with)
			if w.Code != 404 && w.Code != 405 {
				t.Errorf("%s %s: %d %v", method, r.path, w.Code, got)
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d routes were tried", seen)
	}
	for _, path := range []string{"/v1/users", "/v1/billing/invoices"} {
		w, got := call(b.public, "GET", path, "", stranger)
		if want := map[string]float64{"/v1/users": 1}[path]; w.Code != 200 || got["pagination"].(map[string]any)["total"] != want {
			t.Errorf("%s: %d %v", path, w.Code, got)
		}
	}
}

// The database does not answer: who could be served is told to come back, and
// nobody is let in or told that the credential is bad.
func TestWithoutADatabase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dead, err := pgxpool.New(context.WithoutCancel(t.Context()), "postgres://u:p@127.0.0.1:1/none?connect_timeout=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dead.Close)
	c := Config{
		DB: dead, Respond: httpapi.Adapter{Log: slog.New(slog.NewTextHandler(io.Discard, nil))},
		Sessions: sessions.New(sessions.Config{DB: dead, Issuer: "http://gw", Audience: "http://gw"}),
		Identity: identity.Verifier{Secrets: func() [][]byte { return [][]byte{secret} }},
	}
	public, admin := b.bodies(t)
	check := func(h http.Handler, method, path, body string, with ...header) {
		w, got := call(h, method, path, body, with...)
		if w.Code != 503 || w.Header().Get("Retry-After") == "" || code(got) != "service_unavailable" {
			t.Errorf("%s %s: %d %v", method, path, w.Code, got)
		}
	}
	for _, r := range public {
		check(Public(c), r.method, r.path, r.good, bearer(b.seeded.SessionToken))
	}
	for _, r := range admin {
		check(Admin(c), r.method, r.path, r.good, bearer(b.seeded.AdminKey))
	}
	all := byKey(b.seeded.Account, "*")
	for _, path := range []string{"/v1/auth/validate", "/v1/users", "/v1/billing/usage", "/v1/billing/usage?granularity=hour&group_by=route,status", "/v1/billing/invoices", "/v1/billing/invoices/inv_1", "/v1/billing/invoices/upcoming", "/v1/billing/payment-methods", "/v1/billing/subscription", "/v1/health"} {
		check(Public(c), "GET", path, "", all)
	}
	check(Public(c), "POST", "/v1/users", `{"email":"y@example.com","role":"member"}`, all, header{"Idempotency-Key": "k"})
	check(Public(c), "GET", "/.well-known/jwks.json", "")
}

// Everything that happens is logged at the lowest level, and no secret is in it.
func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c := Config{DB: b.db, Respond: httpapi.Adapter{Log: logger}, Sessions: sessions.New(sessions.Config{DB: b.db, Issuer: "http://gw", Audience: "http://gw"}),
		Identity: identity.Verifier{Secrets: func() [][]byte { return [][]byte{secret} }}}
	public, admin := Public(c), Admin(c)
	secrets := []string{b.seeded.APIKey, b.seeded.AdminKey, b.seeded.SessionToken, b.seeded.Password}
	_, key := call(public, "POST", "/v1/auth/keys", `{"name":"k","scopes":["streams:read"]}`, bearer(b.seeded.SessionToken))
	_, invited := call(public, "POST", "/v1/users", `{"email":"x@example.com","role":"member"}`, bearer(b.seeded.SessionToken))
	secrets = append(secrets, key["key"].(string), invited["invitation_token"].(string))
	for _, s := range secrets {
		call(public, "GET", "/v1/auth/keys", "", bearer(s))
		call(public, "POST", "/v1/auth/sessions", `{"email":"`+b.seeded.Email+`","password":"`+s+`"}`)
		call(public, "POST", "/v1/auth/invitations/accept", `{"token":"`+s+`","password":"`+s+`"}`)
		call(admin, "GET", "/admin/v1/self", "", bearer(s))
	}
	b.db.Close() // failures of ours are logged with their cause
	for _, s := range secrets {
		call(public, "POST", "/v1/auth/sessions", `{"email":"`+b.seeded.Email+`","password":"`+s+`"}`)
		call(admin, "GET", "/admin/v1/self", "", bearer(s))
	}
	if log.Len() == 0 {
		t.Fatal("nothing was logged: the test sees nothing")
	}
	for _, s := range secrets {
		if strings.Contains(log.String(), s) {
			t.Errorf("the log holds %s…", s[:8])
		}
	}
}

// A key that was revoked after the edge let it through is not valid.
func TestValidateKnowsWhatTheEdgeDoesNotYet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	k, err := apikeys.Store{DB: b.db}.Create(t.Context(), apikeys.Spec{Account: b.seeded.Account, Name: "k", Scopes: []string{"*"}, Creator: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := (apikeys.Store{DB: b.db}).Revoke(t.Context(), b.seeded.Account, k.ID, []string{"*"}); err != nil {
		t.Fatal(err)
	}
	signed := identityheader.Sign(secret, identityheader.Caller{Account: b.seeded.Account, Key: k.ID}, time.Now().Unix())
	if w, got := call(b.public, "GET", "/v1/auth/validate", "", header{identityheader.Header: signed}); w.Code != 401 || code(got) != "invalid_api_key" {
		t.Fatal(w.Code, got)
	}
}
