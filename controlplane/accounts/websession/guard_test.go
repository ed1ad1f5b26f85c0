package websession

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"sluice.dev/sluice/controlplane/accounts/seed"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

var pages = Guard{Path: "/pages", Name: "pages-", SameSite: http.SameSiteStrictMode}

// carry gives a request the cookies that an answer has set.
func carry(r *http.Request, w *httptest.ResponseRecorder) *http.Request {
	for _, c := range w.Result().Cookies() {
		r.AddCookie(c)
	}
	return r
}

func TestAFormIsBoundToBrowserSessionAndPurpose(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	secret := pages.FormSecret(w, httptest.NewRequest("GET", "/pages", nil))
	token := Token(secret, "sess_1", "revoke")
	ours := func() *http.Request { return carry(httptest.NewRequest("POST", "/pages", nil), w) }
	foreign := ours()
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	for name, c := range map[string]struct {
		r                     *http.Request
		session, about, token string
		want                  bool
	}{
		"as it was given":      {ours(), "sess_1", "revoke", token, true},
		"another session":      {ours(), "sess_2", "revoke", token, false},
		"another purpose":      {ours(), "sess_1", "create", token, false},
		"no token":             {ours(), "sess_1", "revoke", "", false},
		"another browser":      {httptest.NewRequest("POST", "/pages", nil), "sess_1", "revoke", token, false},
		"from another origin":  {foreign, "sess_1", "revoke", token, false},
		"token of no secret":   {ours(), "sess_1", "revoke", Token("", "sess_1", "revoke"), false},
		"one of nobody's form": {ours(), "", "revoke", token, false},
	} {
		if got := pages.Genuine(c.r, c.session, c.about, c.token); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if again := pages.FormSecret(httptest.NewRecorder(), ours()); again != secret {
		t.Error("the browser got another secret, so that its open forms are void")
	}
}

func TestCookiesAreOursAlone(t *testing.T) {
	t.Parallel()
	secure, host := pages, pages
	secure.Secure, host.Secure, host.Path = true, true, "/"
	for name, g := range map[string]Guard{"pages-form": pages, "__Secure-pages-form": secure, "__Host-pages-form": host} {
		w := httptest.NewRecorder()
		g.FormSecret(w, httptest.NewRequest("GET", "/pages", nil))
		c := w.Result().Cookies()[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != g.Path || c.Domain != "" || c.Secure != g.Secure || c.Name != name {
			t.Errorf("%+v", c)
		}
	}
}

func TestASessionLastsUntilItEnds(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	g := pages
	g.Sessions = sessions.New(sessions.Config{DB: db, Issuer: "http://gw", Audience: "http://gw"})
	seeded, err := seed.Local(t.Context(), db, seed.Config{Sessions: g.Sessions})
	if err != nil {
		t.Fatal(err)
	}
	made, err := g.Sessions.SignIn(t.Context(), seeded.Email, seeded.Password, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	g.Enter(w, made)
	signedIn := carry(httptest.NewRequest("GET", "/pages", nil), w)
	if c, ok, err := g.Session(signedIn); !ok || err != nil || c.ID != made.ID || c.Account != seeded.Account {
		t.Fatal(c, ok, err)
	}
	if err := g.Sessions.End(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*http.Request{"ended": signedIn, "never": httptest.NewRequest("GET", "/pages", nil)} {
		if _, ok, err := g.Session(r); ok || err != nil {
			t.Error(name, ok, err)
		}
	}
	w = httptest.NewRecorder()
	g.Leave(w)
	if c := w.Result().Cookies()[0]; c.MaxAge >= 0 || c.Value != "" {
		t.Errorf("%+v", c)
	}
}
