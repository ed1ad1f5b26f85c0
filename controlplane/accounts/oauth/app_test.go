package oauth

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestAppsAreRegisteredByOperators(t *testing.T) {
	t.Parallel()
	b := setup(t)
	br := b.browser(t)
	call := func(method, path, body string) answer {
		r, err := http.NewRequestWithContext(t.Context(), method, b.url+"/admin/v1/apps"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return br.do(r)
	}
	good := `{"account":"` + b.account.ID + `","name":"New","redirect_uris":["` + callback + `"],"scopes":["streams:write","streams:read","streams:read"]}`
	made := call("POST", "", good)
	wantStatus(t, made, 201)
	app := made.object(t)
	id, _ := app["client_id"].(string)
	secret, _ := app["client_secret"].(string)
	if !strings.HasPrefix(id, AppPrefix) || !strings.HasPrefix(secret, secretPrefix) || app["public"] != false || len(app["scopes"].([]any)) != 2 {
		t.Fatal(app)
	}
	public := call("POST", "", strings.Replace(good, `"name"`, `"public":true,"name"`, 1)).object(t)
	if _, has := public["client_secret"]; has || public["public"] != true {
		t.Error("a public client has a secret")
	}
	wantStatus(t, call("GET", "/"+id, ""), 200)
	for _, path := range []string{"", "?account=" + b.account.ID, "/" + id} {
		if got := call("GET", path, ""); got.StatusCode != 200 || strings.Contains(got.body, secret) || !strings.Contains(got.body, id) {
			t.Errorf("GET %s: %s", path, got.body)
		}
	}
	wantStatus(t, call("GET", "?account=%00&limit=x", ""), 400)
	wantStatus(t, call("DELETE", "/"+id, ""), 204)
	wantStatus(t, call("DELETE", "/"+id, ""), 404)
	wantStatus(t, call("GET", "/"+id, ""), 404)
	wantStatus(t, call("DELETE", "/%00", ""), 404)

	var log string
	err := b.db.QueryRow(t.Context(), `SELECT string_agg(action || ' ' || target || coalesce(after::text, ''), ';') FROM audit_log`).Scan(&log)
	if err != nil || !strings.Contains(log, "oauth_app.create "+id) || !strings.Contains(log, "oauth_app.revoke "+id) || strings.Contains(log, secret) {
		t.Error(log, err)
	}
}

func TestAllFaultsOfAnAppAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for body, want := range map[string]string{
		`{}`: "account name redirect_uris scopes",
		`{"account":"acct_0000000000000","name":"N","redirect_uris":["https://a.example/"],"scopes":["streams:read"]}`:                   "account",
		`{"account":"a\u0000","name":"N\u202e","redirect_uris":["https://a.example/","javascript:1"],"scopes":["*","x","streams:read"]}`: "account name redirect_uris[1] scopes[0] scopes[1]",
		`{"account":"` + b.account.ID + `","name":" N","redirect_uris":["http://a.example/#"],"scopes":["none:read"],"public":true}`:     "name redirect_uris[0] scopes[0]",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/admin/v1/apps", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got := b.browser(t).do(r)
		wantStatus(t, got, 400)
		var e struct {
			Error struct{ Details []struct{ Field string } }
		}
		if err := json.Unmarshal([]byte(got.body), &e); err != nil {
			t.Fatal(err)
		}
		var fields []string
		for _, d := range e.Error.Details {
			fields = append(fields, d.Field)
		}
		if strings.Join(fields, " ") != want {
			t.Errorf("%s: %v, want %s", body, fields, want)
		}
	}
}

func TestTheSeededAppIsKeptWhileItWorks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	have := map[string]string{}
	seed := func() (id string) {
		t.Helper()
		id, secret, redirect, err := SeedApp(t.Context(), b.db, b.account.ID, have)
		if err != nil || secret == "" || redirect != seedRedirect {
			t.Fatal(id, redirect, err)
		}
		have["SLUICE_OAUTH_CLIENT_ID"], have["SLUICE_OAUTH_CLIENT_SECRET"] = id, secret
		return id
	}
	first := seed()
	if seed() != first {
		t.Error("a new one was made without need")
	}
	have["SLUICE_OAUTH_CLIENT_SECRET"] = "lost"
	if seed() == first {
		t.Error("its secret is lost, and it was kept")
	}
}

// Nothing that opens anything is stored as it is.
func TestTablesHoldNoSecret(t *testing.T) {
	t.Parallel()
	b := setup(t)
	code := b.grant(t, b.secret, "")
	made, err := b.service.Exchange(t.Context(), b.secret.App, code, callback, "")
	if err != nil {
		t.Fatal(err)
	}
	var all string
	err = b.db.QueryRow(t.Context(), `SELECT concat(
		(SELECT string_agg(t::text, '') FROM oauth_apps t), (SELECT string_agg(t::text, '') FROM oauth_grants t),
		(SELECT string_agg(t::text, '') FROM oauth_codes t), (SELECT string_agg(t::text, '') FROM oauth_refresh_tokens t),
		(SELECT string_agg(t::text, '') FROM oauth_access_tokens t), (SELECT string_agg(t::text, '') FROM audit_log t))`).Scan(&all)
	if err != nil || !strings.Contains(all, b.secret.ID) {
		t.Fatal(all, err)
	}
	for _, secret := range []string{b.secret.Secret, code, made.Access, made.Refresh} {
		if strings.Contains(all, secret) || strings.Contains(all, strings.TrimPrefix(secret, refreshPrefix)) {
			t.Error("a secret is stored in the clear")
		}
	}
}
