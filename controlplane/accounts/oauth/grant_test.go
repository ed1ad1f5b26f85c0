package oauth

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts/oauth/rules"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/postgres"
)

// The example of RFC 7636 appendix B.
const (
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

func TestASecondUseOfACodeEndsAllThatCameFromIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	code := b.grant(t, b.secret, "")
	first, err := b.service.Exchange(t.Context(), b.secret.App, code, callback, "")
	if err != nil {
		t.Fatal(err)
	}
	next, err := b.service.Refresh(t.Context(), b.secret.App, first.Refresh, "")
	if err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(CodeLife + time.Second) // it is recognised for long
	_, err = b.service.Exchange(t.Context(), b.secret.App, code, callback, "")
	wantCode(t, err, rules.InvalidGrant)
	for _, token := range []string{first.Access, next.Access, next.Refresh} {
		if b.active(t, b.secret, token) {
			t.Error("a token outlived the replay of its code")
		}
	}
	if !b.toldToEdges(t, first.Access) || !b.toldToEdges(t, next.Access) {
		t.Error("edges do not know")
	}
}

// together calls f a hundred times at once and returns what succeeded.
func together(t *testing.T, f func() (Tokens, error)) (made []Tokens) {
	t.Helper()
	var mu sync.Mutex
	var g errgroup.Group
	start := make(chan struct{})
	for range 100 {
		g.Go(func() error {
			<-start
			got, err := f()
			if err != nil {
				if oauthCode(err) != rules.InvalidGrant {
					return err
				}
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			made = append(made, got)
			return nil
		})
	}
	close(start)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	return made
}

func TestOfAHundredUsesAtOnceOneSucceedsAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	code, refresh := b.grant(t, b.secret, ""), b.tokens(t).Refresh
	for what, use := range map[string]func() (Tokens, error){
		"code":    func() (Tokens, error) { return b.service.Exchange(t.Context(), b.secret.App, code, callback, "") },
		"refresh": func() (Tokens, error) { return b.service.Refresh(t.Context(), b.secret.App, refresh, "") },
	} {
		made := together(t, use)
		if len(made) != 1 {
			t.Fatalf("%s: %d succeeded", what, len(made))
		}
		if b.active(t, b.secret, made[0].Access) || b.active(t, b.secret, made[0].Refresh) || !b.toldToEdges(t, made[0].Access) {
			t.Errorf("%s: the winner may be the thief, and still has tokens", what)
		}
	}
}

func TestWhatACodeIsBoundTo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.addApp(t, AppSpec{Name: "Other", RedirectURIs: []string{callback}})
	for name, c := range map[string]struct {
		app                           CreatedApp
		challenge, redirect, verifier string
		late                          time.Duration
		want                          string
	}{
		"all right":            {b.secret, challenge, callback, verifier, 0, ""},
		"all right, no PKCE":   {b.secret, "", callback, "", 0, ""},
		"another application":  {other, challenge, callback, verifier, 0, rules.InvalidGrant},
		"no redirect address":  {b.secret, challenge, "", verifier, 0, rules.InvalidGrant},
		"another address":      {b.secret, challenge, callback + "/", verifier, 0, rules.InvalidGrant},
		"no verifier":          {b.secret, challenge, callback, "", 0, rules.InvalidGrant},
		"a wrong verifier":     {b.secret, challenge, callback, strings.Repeat("a", 43), 0, rules.InvalidGrant},
		"the challenge itself": {b.secret, challenge, callback, challenge, 0, rules.InvalidGrant},
		"a verifier for none":  {b.secret, "", callback, verifier, 0, rules.InvalidGrant},
		"too late":             {b.secret, challenge, callback, verifier, CodeLife, rules.InvalidGrant},
	} {
		code := b.grant(t, b.secret, c.challenge)
		b.clock.Advance(c.late)
		_, err := b.service.Exchange(t.Context(), c.app.App, code, c.redirect, c.verifier)
		if oauthCode(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if c.want == "" || c.late > 0 {
			continue
		}
		if _, err := b.service.Exchange(t.Context(), b.secret.App, code, callback, map[bool]string{true: verifier}[c.challenge != ""]); err != nil {
			t.Errorf("%s: the code was used up by it: %v", name, err)
		}
	}
}

func TestARequestThatNamedNoAddress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for redirect, want := range map[string]string{"": "", callback: "", "https://evil.example/": rules.InvalidGrant} {
		code, err := b.service.Grant(t.Context(), b.secret.App, b.user.ID, b.account.ID, rules.Request{Redirect: callback}, []string{"streams:read"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.service.Exchange(t.Context(), b.secret.App, code, redirect, "")
		if oauthCode(err) != want {
			t.Errorf("%q: %v", redirect, err)
		}
	}
}

func TestScopesNarrowForOneTokenAndNeverWiden(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.tokens(t)
	narrow, err := b.service.Refresh(t.Context(), b.secret.App, made.Refresh, "streams:read")
	if err != nil || narrow.Scope != "streams:read" || !slices.Equal(b.verified(t, narrow.Access).Scopes, []string{"streams:read"}) {
		t.Fatal(narrow.Scope, err)
	}
	for _, wider := range []string{"users:write", "streams:read users:write", "*"} {
		_, err := b.service.Refresh(t.Context(), b.secret.App, narrow.Refresh, wider)
		wantCode(t, err, rules.InvalidScope)
	}
	whole, err := b.service.Refresh(t.Context(), b.secret.App, narrow.Refresh, "") // the refusals used nothing up
	if err != nil || whole.Scope != "streams:*" {
		t.Fatal(whole.Scope, err)
	}
}

// What ends tokens, each tried on tokens of its own.
func TestWhatEndsAGrant(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *bundle) error{
		"the application is revoked": func(t *testing.T, b *bundle) error { return b.service.RevokeApp(t.Context(), b.secret.ID) },
		"the person's role changes or they leave": func(t *testing.T, b *bundle) error {
			return postgres.InTx(t.Context(), b.db, func(tx pgx.Tx) error { return EndAllTx(t.Context(), tx, b.user.ID, b.clock.Now()) })
		},
		"the person is removed, and nobody ends the grant": func(t *testing.T, b *bundle) error {
			_, err := b.db.Exec(t.Context(), `UPDATE users SET removed_at = now() WHERE id = $1`, b.user.ID)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			made, code := b.tokens(t), b.grant(t, b.secret, "")
			if err := end(t, b); err != nil {
				t.Fatal(err)
			}
			if b.active(t, b.secret, made.Access) || b.active(t, b.secret, made.Refresh) {
				t.Error("tokens go on")
			}
			_, err := b.service.Refresh(t.Context(), b.secret.App, made.Refresh, "")
			wantCode(t, err, rules.InvalidGrant)
			_, err = b.service.Exchange(t.Context(), b.secret.App, code, callback, "")
			wantCode(t, err, rules.InvalidGrant)
			if !strings.Contains(name, "nobody") && !b.toldToEdges(t, made.Access) {
				t.Error("edges do not know")
			}
		})
	}
}

func TestRefreshTokensBelongToOneApplicationAndEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.addApp(t, AppSpec{Name: "Other", RedirectURIs: []string{callback}})
	made := b.tokens(t)
	_, err := b.service.Refresh(t.Context(), other.App, made.Refresh, "")
	wantCode(t, err, rules.InvalidGrant)
	b.clock.Advance(AccessLife)
	if b.active(t, b.secret, made.Access) || !b.active(t, b.secret, made.Refresh) {
		t.Error("an access token lasts an hour, its refresh token longer")
	}
	b.clock.Advance(RefreshLife - AccessLife)
	_, err = b.service.Refresh(t.Context(), b.secret.App, made.Refresh, "")
	wantCode(t, err, rules.InvalidGrant)
}

// A token that is issued while its application is revoked must not be forgotten.
func TestNoTokenSlipsThroughWhileAnApplicationIsRevoked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 10 {
		app := b.addApp(t, AppSpec{Name: "Race", RedirectURIs: []string{callback}})
		code := b.grant(t, app, "")
		var made Tokens
		var g errgroup.Group
		g.Go(func() (err error) {
			made, err = b.service.Exchange(t.Context(), app.App, code, callback, "")
			if oauthCode(err) == rules.InvalidGrant {
				return nil
			}
			return err
		})
		g.Go(func() error { return b.service.RevokeApp(t.Context(), app.ID) })
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if made.Access != "" && !b.toldToEdges(t, made.Access) {
			t.Fatal("a token was issued that no edge refuses")
		}
	}
}

func TestPurgeForgetsWhatIsOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.tokens(t)
	if err := b.service.Revoke(t.Context(), b.secret.App, made.Access); err != nil {
		t.Fatal(err)
	}
	purge := func(want int) {
		t.Helper()
		if n, err := b.service.Purge(t.Context()); n != want || err != nil {
			t.Fatalf("%d rows went, want %d: %v", n, want, err)
		}
	}
	tag := keytable.TagOfToken(claimsOf(t, made.Access).ID)
	told := func() (told bool) {
		t.Helper()
		err := b.db.QueryRow(t.Context(), `SELECT record IS NOT NULL FROM edge_records WHERE tag = $1`, tag[:]).Scan(&told)
		if err != nil {
			t.Fatal(err)
		}
		return told
	}
	purge(0)
	if !told() {
		t.Fatal("edges were not told")
	}
	b.clock.Advance(AccessLife + time.Second)
	purge(1)
	if told() {
		t.Error("edges keep a token that is over")
	}
	b.clock.Advance(RefreshLife)
	purge(2) // the refresh token, and the grant with its code
	purge(0)
}

func TestANewSigningKeyIsUsedOnceEdgesKnowIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	kid := func() string {
		t.Helper()
		set, err := b.sessions.Keyring.Public(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		made := b.tokens(t)
		b.verified(t, made.Access)
		header, _, _ := strings.Cut(made.Access, ".")
		for _, k := range set.Keys {
			if strings.Contains(decoded(t, header), k.ID) {
				return k.ID
			}
		}
		t.Fatal("signed by a key that is not published")
		return ""
	}
	first := kid()
	b.clock.Advance(time.Hour)
	if _, err := b.sessions.Keyring.Rotate(t.Context(), 0, AccessLife); err != nil {
		t.Fatal(err)
	}
	if kid() != first {
		t.Error("the new key signs before edges know it")
	}
	b.clock.Advance(publishLead)
	if kid() == first {
		t.Error("the old key still signs")
	}
}

func TestAClientThatRefreshesInALoopIsSlowedDown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.tokens(t)
	_, err := b.db.Exec(t.Context(), `INSERT INTO oauth_access_tokens (id, hash, grant_id, scopes, issued_at, expires_at)
		SELECT 'oat_' || n, sha256(n::text::bytea), grant_id, scopes, issued_at, expires_at FROM oauth_access_tokens, generate_series(2, $1) n`, maxLive)
	if err != nil {
		t.Fatal(err)
	}
	refresh := func() answer {
		return b.browser(t).post("/oauth/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {made.Refresh},
			"client_id": {b.secret.ID}, "client_secret": {b.secret.Secret}})
	}
	slow := refresh()
	wantStatus(t, slow, http.StatusTooManyRequests)
	if slow.Header.Get("Retry-After") != "3600" || slow.object(t)["error"] != rules.TemporarilyUnavailable {
		t.Error(slow.Header, slow.body)
	}
	b.clock.Advance(AccessLife)
	wantStatus(t, refresh(), http.StatusOK) // with the same refresh token
}
