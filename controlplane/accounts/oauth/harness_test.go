package oauth

import (
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/oauth2"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/oauth/rules"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/clock/clocktest"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

const (
	email    = "ann@example.com"
	password = "correct horse"
	callback = "https://client.example/callback"
)

// bundle is a whole server with one account, one person and one application of
// each kind.
type bundle struct {
	db       *pgxpool.Pool
	clock    *clocktest.Clock
	url      string
	service  *Service
	sessions *sessions.Service
	account  accounts.Account
	user     accounts.User
	secret   CreatedApp // confidential
	public   CreatedApp
}

func setup(t testing.TB) *bundle {
	t.Helper()
	b := &bundle{db: pgtest.Pool(t), clock: clocktest.New(time.Now().Truncate(time.Second))}
	r := chi.NewRouter()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	b.url = server.URL
	b.sessions = sessions.New(sessions.Config{DB: b.db, Issuer: b.url, Audience: b.url, Now: b.clock.Now})
	b.service = New(Config{DB: b.db, Sessions: b.sessions, Issuer: b.url, Audience: b.url, Now: b.clock.Now})
	b.service.Routes(r, httpapi.Adapter{})
	sessions.API{Service: b.sessions}.Routes(r)
	r.Route("/admin/v1", func(r chi.Router) { b.service.AdminRoutes(r, httpapi.Adapter{}) })

	var err error
	if _, err = scoperegistry.Ensure(t.Context(), b.db, "streams:read", "streams:write", "users:write"); err != nil {
		t.Fatal(err)
	}
	if b.account, err = (accounts.Store{DB: b.db}).Create(t.Context(), "Ann & Co", "local"); err != nil {
		t.Fatal(err)
	}
	b.user = b.addUser(t, email, accounts.Owner)
	b.secret = b.addApp(t, AppSpec{Name: "Studio", RedirectURIs: []string{callback}})
	b.public = b.addApp(t, AppSpec{Name: "Phone", Public: true, RedirectURIs: []string{"http://127.0.0.1/cb", "com.example.phone:/cb"}})
	return b
}

func (b *bundle) addUser(t testing.TB, email, role string) accounts.User {
	t.Helper()
	hash, err := sessions.HashPassword(t.Context(), password, "")
	if err != nil {
		t.Fatal(err)
	}
	u, err := accounts.Store{DB: b.db}.AddUser(t.Context(), b.account.ID, email, role, hash)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// addApp registers p for the account, with every scope unless it names some.
func (b *bundle) addApp(t testing.TB, p AppSpec) CreatedApp {
	t.Helper()
	p.Account = b.account.ID
	if p.Scopes == nil {
		p.Scopes = []string{"streams:*", "users:write"}
	}
	made, err := b.service.CreateApp(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// grant makes a code without the pages. An empty challenge means no PKCE.
func (b *bundle) grant(t testing.TB, app CreatedApp, challenge string) string {
	t.Helper()
	q := rules.Request{Redirect: app.RedirectURIs[0], Named: true, Challenge: challenge}
	code, err := b.service.Grant(t.Context(), app.App, b.user.ID, b.account.ID, q, []string{"streams:*"})
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// tokens are those of a new grant of the confidential application.
func (b *bundle) tokens(t testing.TB) Tokens {
	t.Helper()
	got, err := b.service.Exchange(t.Context(), b.secret.App, b.grant(t, b.secret, ""), callback, "")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// active is what introspection says of a token.
func (b *bundle) active(t *testing.T, app CreatedApp, token string) bool {
	t.Helper()
	i, err := b.service.Introspect(t.Context(), app.App, token)
	if err != nil {
		t.Fatal(err)
	}
	return i.Active
}

// toldToEdges reports whether the feed says that an access token has ended.
func (b *bundle) toldToEdges(t *testing.T, access string) bool {
	t.Helper()
	tag := keytable.TagOfToken(claimsOf(t, access).ID)
	var raw []byte
	err := b.db.QueryRow(t.Context(), `SELECT coalesce((SELECT record FROM edge_records WHERE tag = $1), '')`, tag[:]).Scan(&raw)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := keytable.Decode(raw)
	return ok && r.Kind == keytable.KindToken && r.Expires > uint32(b.clock.Now().Unix())
}

// config is that of a real client library.
func (b *bundle) config(app CreatedApp, redirect string, scopes ...string) *oauth2.Config {
	return &oauth2.Config{ClientID: app.ID, ClientSecret: app.Secret, RedirectURL: redirect, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: b.url + "/oauth/authorize", TokenURL: b.url + "/oauth/token"}}
}

// answer is an HTTP answer, read whole.
type answer struct {
	*http.Response
	body string
}

// visitor keeps cookies and follows no redirect by itself.
type visitor struct {
	*http.Client
	t    *testing.T
	base string
}

func (b *bundle) browser(t *testing.T) visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return visitor{&http.Client{Jar: jar, CheckRedirect: stay}, t, b.url}
}

func (br visitor) do(r *http.Request) answer {
	br.t.Helper()
	res, err := br.Do(r)
	if err != nil {
		br.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		br.t.Fatal(err)
	}
	return answer{res, string(body)}
}

func (br visitor) get(address string) answer {
	br.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = br.base + address
	}
	r, err := http.NewRequestWithContext(br.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		br.t.Fatal(err)
	}
	return br.do(r)
}

func (br visitor) post(path string, form url.Values, headers ...string) answer {
	br.t.Helper()
	r, err := http.NewRequestWithContext(br.t.Context(), http.MethodPost, br.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		br.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return br.do(r)
}

var hidden = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`)

// form is what the first form of a page carries, with more fields.
func (a answer) form(more ...string) url.Values {
	f := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(a.body, 2) {
		f.Set(m[1], html.UnescapeString(m[2]))
	}
	for i := 0; i < len(more); i += 2 {
		f.Set(more[i], more[i+1])
	}
	return f
}

// consentPage signs in at an authorization address and returns the page that
// asks.
func (br visitor) consentPage(address, email string) answer {
	br.t.Helper()
	page := br.get(address)
	if strings.Contains(page.body, `type="password"`) {
		in := br.post("/oauth/sign-in", page.form("email", email, "password", password))
		wantStatus(br.t, in, http.StatusSeeOther)
		page = br.get(in.Header.Get("Location"))
	}
	wantStatus(br.t, page, http.StatusOK)
	return page
}

// allow goes the whole way and returns the query of the redirect.
func (br visitor) allow(address string) url.Values {
	br.t.Helper()
	page := br.consentPage(address, email)
	return landed(br.t, br.post("/oauth/consent", page.form("answer", "allow")))
}

// landed is the query with which the client is called back.
func landed(t *testing.T, a answer) url.Values {
	t.Helper()
	wantStatus(t, a, http.StatusSeeOther)
	u, err := url.Parse(a.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

func wantStatus(t *testing.T, a answer, status int) {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d: %s", a.Request.Method, a.Request.URL.Path, a.StatusCode, status, a.body)
	}
}

// object decodes a JSON answer.
func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%d %s: %v", a.StatusCode, a.body, err)
	}
	return v
}

// oauthCode is the error of a client library or of the service, "" for none.
func oauthCode(err error) string {
	switch e := err.(type) { //nolint:errorlint // both come unwrapped
	case nil:
		return ""
	case *oauth2.RetrieveError:
		return e.ErrorCode
	case *rules.Error:
		return e.Code
	}
	return err.Error()
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if got := oauthCode(err); got != code {
		t.Fatalf("got %q, want %q", got, code)
	}
}

// refreshed asks the library for new tokens.
func refreshed(ctx context.Context, c *oauth2.Config, refresh string) (*oauth2.Token, error) {
	return c.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
}
