package oauth

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/accounts"
)

func decoded(t *testing.T, s string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// address is an authorization request of app with more parameters.
func address(app CreatedApp, more ...string) string {
	q := url.Values{"client_id": {app.ID}, "response_type": {"code"}, "state": {"s"}, "code_challenge": {challenge}, "code_challenge_method": {"S256"}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return "/oauth/authorize?" + q.Encode()
}

// bare is for an address without PKCE.
var bare = []string{"code_challenge", "", "code_challenge_method", ""}

func TestPagesAreGuarded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.addApp(t, AppSpec{Name: `<b>"Eve" & co</b>`, RedirectURIs: []string{callback}})
	br := b.browser(t)
	for _, page := range []answer{br.get(address(app)), br.consentPage(address(app, "scope", "streams:read"), email), br.get("/oauth/authorize")} {
		h := page.Header
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'", "style-src 'sha256-"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s is missing: %s", part, csp)
			}
		}
		if strings.Contains(csp, "script-src") || strings.Contains(csp, "unsafe") || strings.Contains(page.body, "<script") {
			t.Error("script is possible: ", csp)
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Frame-Options") != "DENY" || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Referrer-Policy") != "same-origin" || h.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Error(h)
		}
		if strings.Contains(page.body, "<b>") {
			t.Error("the application's name became markup")
		}
		for _, c := range page.Cookies() {
			if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/oauth" {
				t.Errorf("%+v", c)
			}
		}
	}
}

func TestCookiesOfASecureIssuerAreSecure(t *testing.T) {
	t.Parallel()
	g := newGuard(Config{Issuer: "https://auth.example"})
	w := httptest.NewRecorder()
	g.Leave(w)
	if c := w.Result().Cookies()[0]; !c.Secure || c.Name != "__Secure-sluice-session" {
		t.Fatalf("%+v", g)
	}
}

func TestConsentPageSaysWhatItIsAbout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "bob@example.com", accounts.Member)
	br := b.browser(t)
	page := br.consentPage(address(b.secret, "scope", "streams:read users:write"), "bob@example.com")
	for _, text := range []string{"Studio", "bob@example.com", "Ann &amp; Co", "List and view your streams", "which you may not do yourself", "client.example"} {
		if !strings.Contains(page.body, text) {
			t.Errorf("%q is not on the page", text)
		}
	}
	q := landed(t, br.post("/oauth/consent", page.form("answer", "allow")))
	made, err := b.service.Exchange(t.Context(), b.secret.App, q.Get("code"), "", verifier)
	if err != nil || made.Scope != "streams:read" {
		t.Fatalf("a member gave away %q: %v", made.Scope, err)
	}
	none := br.consentPage(address(b.secret, "scope", "users:write"), "")
	if strings.Contains(none.body, `value="allow"`) || !strings.Contains(none.body, "cannot allow it") {
		t.Error(none.body)
	}
	if q := landed(t, br.post("/oauth/consent", none.form("answer", "allow"))); q.Get("error") != "access_denied" || q.Get("code") != "" {
		t.Error(q)
	}
}

func TestCancelGoesBackWithoutACode(t *testing.T) {
	t.Parallel()
	b := setup(t)
	br := b.browser(t)
	page := br.consentPage(address(b.secret), email)
	for _, answer := range []string{"deny", "", "other"} {
		q := landed(t, br.post("/oauth/consent", page.form("answer", answer)))
		if q.Get("error") != "access_denied" || q.Get("state") != "s" || q.Get("iss") != b.url || q.Has("code") {
			t.Error(q)
		}
	}
}

// Where the client or the address is in doubt nobody is sent anywhere.
func TestRequestsThatGoNowhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	br := b.browser(t)
	for name, a := range map[string]string{
		"no client":             "/oauth/authorize",
		"unknown client":        "/oauth/authorize?client_id=app_0000000000000",
		"no id":                 "/oauth/authorize?client_id=%27--",
		"another's address":     address(b.secret, "redirect_uri", "https://evil.example/callback"),
		"an address that grew":  address(b.secret, "redirect_uri", callback+"/x"),
		"an address in another": address(b.secret, "redirect_uri", callback+"@evil.example"),
		"two addresses":         address(b.secret, "redirect_uri", callback) + "&redirect_uri=https://evil.example/",
		"one of two, unnamed":   address(b.public),
		"no encoding":           address(b.secret) + "&x=%zz",
		"too long":              address(b.secret) + "&x=" + strings.Repeat("a", 9<<10),
		"no text":               address(b.secret) + "&x=%00",
	} {
		page := br.get(a)
		if page.StatusCode != http.StatusBadRequest || page.Header.Get("Location") != "" || strings.Contains(page.body, "<form") {
			t.Errorf("%s: %d %q", name, page.StatusCode, page.Header.Get("Location"))
		}
	}
}

func TestErrorsThatTheClientIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	br := b.browser(t)
	for query, want := range map[string]string{
		address(b.secret, "response_type", "token"):                                    "unsupported_response_type",
		address(b.secret, "response_type", ""):                                         "invalid_request",
		address(b.secret, "scope", "billing:read"):                                     "invalid_scope",
		address(b.secret, "scope", "*"):                                                "invalid_scope",
		address(b.secret, "code_challenge", "plain"):                                   "invalid_request",
		address(b.secret) + "&scope=a&scope=b":                                         "invalid_request",
		address(b.public, append(bare, "redirect_uri", "http://127.0.0.1:5000/cb")...): "invalid_request",
		address(b.public, append(bare, "redirect_uri", "com.example.phone:/cb")...):    "invalid_request",
		address(b.secret, bare...):                                                     "invalid_request",
	} {
		q := landed(t, br.get(query))
		if q.Get("error") != want || q.Get("error_description") == "" || q.Get("state") != "s" || q.Get("iss") != b.url {
			t.Errorf("%s: %v", query, q)
		}
	}
}

// What was registered before PKCE was asked of all goes on, but not without a secret.
func TestApplicationsOfBeforeGoOnWithoutPKCE(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.db.Exec(t.Context(), `UPDATE oauth_apps SET without_pkce = DEFAULT`); err != nil {
		t.Fatal(err)
	}
	for app, want := range map[*CreatedApp]int{&b.secret: 200, &b.public: 303} {
		if got := b.browser(t).get(address(*app, append(bare, "redirect_uri", app.RedirectURIs[0])...)); got.StatusCode != want {
			t.Errorf("%s: %d, want %d", app.Name, got.StatusCode, want)
		}
		if a, err := b.service.App(t.Context(), app.ID); err != nil || a.PKCE != a.Public {
			t.Errorf("%+v %v", a, err)
		}
	}
}

func TestForgedFormsAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	victim, attacker := b.browser(t), b.browser(t)
	page := victim.consentPage(address(b.secret, "scope", "streams:read"), email)
	other := attacker.consentPage(address(b.secret, "scope", "streams:read"), email)
	wider := page.form("answer", "allow")
	wider.Set("request", strings.Replace(wider.Get("request"), "read", "write", 1))
	before := b.browser(t)
	signIn := before.get(address(b.secret)).form("answer", "allow")
	for name, a := range map[string]answer{
		"no token":                    victim.post("/oauth/consent", url.Values{"request": page.form()["request"], "answer": {"allow"}}),
		"the attacker's token":        victim.post("/oauth/consent", other.form("answer", "allow")),
		"a token for another request": victim.post("/oauth/consent", wider),
		"from another site":           victim.post("/oauth/consent", page.form("answer", "allow"), "Sec-Fetch-Site", "cross-site"),
		"from another origin":         victim.post("/oauth/consent", page.form("answer", "allow"), "Origin", "https://evil.example"),
		"from nowhere":                victim.post("/oauth/consent", page.form("answer", "allow"), "Origin", "null"),
		"sign-out without a token":    victim.post("/oauth/sign-out", url.Values{"request": page.form()["request"]}),
		"sign-in without a token":     b.browser(t).post("/oauth/sign-in", signIn),
		"JSON":                        victim.post("/oauth/consent", page.form("answer", "allow"), "Content-Type", "application/json"),
		"a field twice":               victim.post("/oauth/consent", url.Values{"answer": {"allow", "deny"}}),
	} {
		if a.StatusCode != http.StatusBadRequest || a.Header.Get("Location") != "" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.Header.Get("Location"))
		}
	}
	if again := landed(t, before.post("/oauth/consent", signIn)); again.Has("code") || again.Get("client_id") != b.secret.ID {
		t.Error("consent without a person: ", again)
	}
	if q := landed(t, victim.post("/oauth/consent", page.form("answer", "allow"), "Origin", b.url)); !q.Has("code") {
		t.Error("the genuine form is refused: ", q)
	}
}

func TestFailedSignIns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	br := b.browser(t)
	page := br.get(address(b.secret))
	bodies := map[string]bool{}
	for _, who := range []string{email, "zoe@example.com"} {
		got := br.post("/oauth/sign-in", page.form("email", who, "password", "wrong"))
		wantStatus(t, got, http.StatusUnauthorized)
		bodies[strings.ReplaceAll(got.body, who, "")] = true
		if strings.Contains(got.body, "wrong\"") || got.Header.Get("Set-Cookie") != "" {
			t.Error(got.body, got.Header)
		}
	}
	if len(bodies) != 1 {
		t.Error("a stranger learns who is known")
	}
	wantStatus(t, br.post("/oauth/sign-in", page.form("email", strings.Repeat("a", 300), "password", "x")), http.StatusUnauthorized)
	var last answer
	for range 11 {
		last = br.post("/oauth/sign-in", page.form("email", email, "password", "wrong"))
	}
	wantStatus(t, last, http.StatusTooManyRequests)
	if last.Header.Get("Retry-After") == "" || !strings.Contains(last.body, `role="alert"`) {
		t.Error(last.Header, last.body)
	}
}

func TestAnotherAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	br := b.browser(t)
	page := br.consentPage(address(b.secret), email)
	out := br.post("/oauth/sign-out", page.form())
	wantStatus(t, out, http.StatusSeeOther)
	if again := br.get(out.Header.Get("Location")); !strings.Contains(again.body, `type="password"`) {
		t.Error("still signed in")
	}
	var live int
	err := b.db.QueryRow(t.Context(), `SELECT count(*) FROM sessions WHERE revoked_at IS NULL`).Scan(&live)
	if err != nil || live != 0 {
		t.Error("the session goes on", live, err)
	}
}

func TestAnOutageIsNoClientsFault(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.db.Close()
	got := b.browser(t).post("/oauth/token", url.Values{"client_id": {b.public.ID}})
	if body := got.object(t); got.StatusCode/100 != 5 || body["error"] != "server_error" && body["error"] != "temporarily_unavailable" || strings.Contains(got.body, "pool") {
		t.Error(got.StatusCode, got.body)
	}
	if page := b.browser(t).get(address(b.secret)); page.StatusCode/100 != 5 || strings.Contains(page.body, "pool") {
		t.Error(page.StatusCode, page.body)
	}
}

// Somebody opens two links, signs in at one page and then at the other.
func TestTwoTabs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	br := b.browser(t)
	first, second := br.get(address(b.secret, "state", "1")), br.get(address(b.secret, "state", "2"))
	for state, page := range map[string]answer{"1": first, "2": second} {
		in := br.post("/oauth/sign-in", page.form("email", email, "password", password))
		consent := br.get(in.Header.Get("Location"))
		if q := landed(t, br.post("/oauth/consent", consent.form("answer", "allow"))); q.Get("state") != state || !q.Has("code") {
			t.Error(q)
		}
	}
}

func TestWhatOnlyPostMayDo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range []string{"/oauth/sign-in", "/oauth/consent", "/oauth/sign-out", "/oauth/token", "/oauth/revoke", "/oauth/introspect"} {
		wantStatus(t, b.browser(t).get(path), http.StatusMethodNotAllowed)
	}
}
