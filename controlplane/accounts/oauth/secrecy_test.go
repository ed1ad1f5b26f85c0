package oauth

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"golang.org/x/oauth2"
	"sluice.dev/sluice/controlplane/accounts/oauth/rules"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// An application must not become the person: its tokens are no session, so they
// make no keys and sign nobody out.
func TestAccessTokensAreNoSessions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.tokens(t)
	if _, err := b.sessions.Verify(t.Context(), made.Access); apierror.Code(err) != decision.InvalidToken {
		t.Fatal(err)
	}
	br := b.browser(t)
	home, err := url.Parse(b.url)
	if err != nil {
		t.Fatal(err)
	}
	home.Path = "/oauth"
	br.Jar.SetCookies(home, []*http.Cookie{{Name: "sluice-session", Value: made.Access, Path: "/oauth"}})
	if page := br.get(address(b.secret)); !strings.Contains(page.body, `type="password"`) {
		t.Error("an access token signs people in")
	}
}

func TestTokensThatWereTamperedWithAreUnknown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.tokens(t)
	head, rest, _ := strings.Cut(made.Access, ".")
	body, signature, _ := strings.Cut(rest, ".")
	for name, token := range map[string]string{
		"no signature":       head + "." + body + ".",
		"another signature":  head + "." + body + "." + strings.Repeat("A", len(signature)),
		"one letter more":    made.Access + "A",
		"padding":            made.Access + "=",
		"the id alone":       claimsOf(t, made.Access).ID,
		"a session's token":  b.sessionToken(t),
		"an upper-case twin": strings.ToUpper(made.Refresh),
		"NUL":                "\x00",
	} {
		if b.active(t, b.secret, token) {
			t.Error(name)
		}
	}
}

func (b *bundle) sessionToken(t *testing.T) string {
	t.Helper()
	s, err := b.sessions.Create(t.Context(), b.user.ID)
	if err != nil {
		t.Fatal(err)
	}
	return s.Token
}

// lockedBuffer may be written by several handlers at once.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Refusals and failures are logged and answered without what they were about.
func TestNothingSecretIsLoggedOrAnswered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made, code := b.tokens(t), b.grant(t, b.secret, challenge)
	log := &lockedBuffer{}
	r := chi.NewRouter()
	b.service.Routes(r, httpapi.Adapter{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	br := b.browser(t)
	br.base = server.URL
	client := func(more ...string) url.Values {
		f := url.Values{"client_id": {b.secret.ID}, "client_secret": {b.secret.Secret}}
		for i := 0; i < len(more); i += 2 {
			f.Set(more[i], more[i+1])
		}
		return f
	}
	var answers strings.Builder
	all := func() {
		for path, form := range map[string]url.Values{
			"/oauth/token":      client("grant_type", "authorization_code", "code", code, "code_verifier", strings.Repeat("v", 43), "redirect_uri", callback),
			"/oauth/revoke":     client("token", "unknown "+made.Refresh),
			"/oauth/introspect": client("token", made.Access+"x"),
			"/oauth/sign-in":    {"password": {password}, "token": {"forged"}, "request": {address(b.secret)}},
		} {
			answers.WriteString(br.post(path, form).body)
		}
	}
	all()
	b.db.Close()
	all()
	if !strings.Contains(log.b.String(), "request failed") {
		t.Fatal("failures are not logged")
	}
	for _, secret := range []string{b.secret.Secret, code, made.Access, made.Refresh, password, strings.Repeat("v", 43)} {
		if strings.Contains(log.b.String(), secret) || strings.Contains(answers.String(), secret) {
			t.Errorf("%.8s… was told", secret)
		}
	}
}

func TestGrantsOfOnePersonEndOneByOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.tokens(t), b.tokens(t)
	rotated, err := b.service.Refresh(t.Context(), b.secret.App, first.Refresh, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.service.Revoke(t.Context(), b.secret.App, first.Refresh); err != nil { // used, and still of the family
		t.Fatal(err)
	}
	if b.active(t, b.secret, rotated.Access) || b.active(t, b.secret, rotated.Refresh) {
		t.Error("the family lives on")
	}
	if !b.active(t, b.secret, second.Access) || b.toldToEdges(t, second.Access) {
		t.Error("another consent ended with it")
	}
}

// An edge may drop the record when the token has run out: not earlier.
func TestWhatEdgesAreToldLastsAsLongAsTheToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.tokens(t)
	b.clock.Advance(10 * time.Minute)
	if err := b.service.Revoke(t.Context(), b.secret.App, made.Access); err != nil {
		t.Fatal(err)
	}
	claims := claimsOf(t, made.Access)
	tag := keytable.TagOfToken(claims.ID)
	var raw []byte
	if err := b.db.QueryRow(t.Context(), `SELECT record FROM edge_records WHERE tag = $1`, tag[:]).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	if r, ok := keytable.Decode(raw); !ok || int64(r.Expires) != claims.ExpiresAt.Unix() {
		t.Errorf("%+v, want until %v", r, claims.ExpiresAt)
	}
}

// A native application with an address of its own scheme.
func TestPrivateSchemes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.config(b.public, "com.example.phone:/cb", "streams:read")
	proof := oauth2.GenerateVerifier()
	br := b.browser(t)
	page := br.consentPage(c.AuthCodeURL("x", oauth2.S256ChallengeOption(proof)), email)
	if !strings.HasSuffix(page.Header.Get("Content-Security-Policy"), "form-action 'self' com.example.phone:") || !strings.Contains(page.body, "com.example.phone:") {
		t.Error(page.Header.Get("Content-Security-Policy"))
	}
	done := br.post("/oauth/consent", page.form("answer", "allow"))
	if !strings.HasPrefix(done.Header.Get("Location"), "com.example.phone:/cb?code=") {
		t.Fatal(done.Header.Get("Location"))
	}
	if _, err := c.Exchange(t.Context(), landed(t, done).Get("code"), oauth2.VerifierOption(proof)); err != nil {
		t.Fatal(err)
	}
}

func TestAConsentPageOutlivesItsSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	br := b.browser(t)
	page := br.consentPage(address(b.secret), email)
	b.clock.Advance(13 * time.Hour)
	if got := br.post("/oauth/consent", page.form("answer", "allow")); got.StatusCode != http.StatusBadRequest || got.Header.Get("Location") != "" {
		t.Error("whoever finds the page open may allow it: ", got.StatusCode)
	}
	if again := br.get(address(b.secret)); !strings.Contains(again.body, `type="password"`) {
		t.Error("still signed in")
	}
}

func TestRefusalsOfTheRulesReadWell(t *testing.T) {
	t.Parallel()
	e := &rules.Error{Code: "invalid_grant", Description: "Why."}
	if e.Error() != "invalid_grant: Why." {
		t.Error(e)
	}
}
