package dashboard

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/oauth"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/controlplane/accounts/seed"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/rehearsal"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/platform/storage/secretbox"
	"sluice.dev/sluice/workers/payments"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/webhooks"
)

// bundle is a dashboard over a database of its own.
type bundle struct {
	Config
	db      *pgxpool.Pool
	seeded  seed.Result // the operator's account
	handler http.Handler
}

func setup(t testing.TB) *bundle {
	t.Helper()
	db, quiet := pgtest.Pool(t), slog.New(slog.DiscardHandler)
	people := sessions.New(sessions.Config{DB: db, Issuer: "http://gw", Audience: "http://gw"})
	d, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	docs := config.Store{DB: db}
	if err := docs.Init(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	seeded, err := seed.Local(t.Context(), db, seed.Config{Sessions: people})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := river.NewClient(riverpgxv5.New(db), &river.Config{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	box, err := secretbox.New(strings.Repeat("k", secretbox.MinKey))
	if err != nil {
		t.Fatal(err)
	}
	client := outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	hooks := webhooks.New(webhooks.Config{DB: db, Jobs: jobs, Box: box, Client: client, Log: quiet})
	b := &bundle{db: db, seeded: seeded, Config: Config{
		DB: db, Sessions: people, Webhooks: hooks, Version: "test", Log: quiet, Every: 10 * time.Millisecond,
		Documents: config.NewPublisher(docs, func(config.Document) error { return nil }, nil),
		Schedules: schedules.New(schedules.Config{DB: db, Jobs: jobs, Events: hooks, Box: box, CheckURL: client.CheckURL, Log: quiet}),
		Payments:  payments.Admin{DB: db},
		Apps:      oauth.New(oauth.Config{DB: db, Sessions: people, Issuer: "http://gw", Audience: "http://gw"}),
		Requests:  requestlog.Store{DB: db, PathKey: requestlog.NewPathKey([]byte("secret"))},
	}}
	b.Resumed = func(ctx context.Context, tx pgx.Tx, account string) error {
		return errors.Join(b.Config.Webhooks.ReleaseTx(ctx, tx, account), b.Config.Schedules.ReleaseTx(ctx, tx, account))
	}
	b.Rehearse = rehearsal.New(rehearsal.Service{Documents: b.Documents, Requests: b.Requests})
	b.serve()
	return b
}

// serve makes the handler anew, after a change of the configuration.
func (b *bundle) serve() {
	r := chi.NewRouter()
	Routes(b.Config)(r)
	b.handler = r
}

// person adds someone to an account ("" for a new one of the plan pro) and signs
// them in.
func (b *bundle) person(t testing.TB, account, email, role string) *visitor {
	t.Helper()
	if account == "" {
		a, err := accounts.Store{DB: b.db}.Create(t.Context(), "Acme", "pro")
		if err != nil {
			t.Fatal(err)
		}
		account = a.ID
	}
	hash, err := sessions.HashPassword(t.Context(), "correct horse battery", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (accounts.Store{DB: b.db}).AddUser(t.Context(), account, email, role, hash); err != nil {
		t.Fatal(err)
	}
	return b.visitor().signIn(t, email, "correct horse battery")
}

// operator signs the owner of the operator's account in.
func (b *bundle) operator(t testing.TB) *visitor {
	t.Helper()
	return b.visitor().signIn(t, b.seeded.Email, b.seeded.Password)
}

// visitor is a browser: it keeps cookies, and follows no redirect by itself.
type visitor struct {
	handler http.Handler
	cookies map[string]*http.Cookie
}

func (b *bundle) visitor() *visitor { return &visitor{b.handler, map[string]*http.Cookie{}} }

// answer is what a browser gets.
type answer struct {
	*httptest.ResponseRecorder
	body string
}

// do sends a request with the cookies.
func (v *visitor) do(r *http.Request) answer {
	for _, c := range v.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	v.handler.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		v.cookies[c.Name] = c
		if c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		}
	}
	return answer{w, w.Body.String()}
}

func (v *visitor) get(path string) answer {
	return v.do(httptest.NewRequest(http.MethodGet, path, nil))
}

func (v *visitor) post(path string, form url.Values, headers ...string) answer {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return v.do(r)
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]+)"`)

// token is that of the forms on a page.
func (a answer) token(t testing.TB) string {
	t.Helper()
	m := tokenField.FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("there is no form: %d %s", a.Code, a.body)
	}
	return m[1]
}

// signIn signs a visitor in.
func (v *visitor) signIn(t testing.TB, email, password string) *visitor {
	t.Helper()
	form := url.Values{"token": {v.get(Root + "/sign-in").token(t)}, "email": {email}, "password": {password}}
	if got := v.post(Root+"/sign-in", form); got.Code != 303 || got.Header().Get("Location") != Root {
		t.Fatal(got.Code, got.Header(), got.body)
	}
	return v
}

// send sends a form that stands on a page, with more fields.
func (v *visitor) send(t testing.TB, page, action string, fields ...string) answer {
	t.Helper()
	form := url.Values{"token": {v.get(page).token(t)}}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return v.post(action, form)
}

// known are the names of all scopes.
func (b *bundle) known(ctx context.Context, t *testing.T) []string {
	t.Helper()
	r, err := scoperegistry.Load(ctx, b.db)
	if err != nil {
		t.Fatal(err)
	}
	return r.Plain()
}

// stream opens a live part at a real server, until the test ends.
func (v *visitor) stream(t *testing.T, server *httptest.Server, name string) (*http.Response, io.Reader) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+Root+"/live/"+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.cookies {
		r.AddCookie(c)
	}
	res, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res, res.Body
}
