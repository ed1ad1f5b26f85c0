package team

import (
	"context"
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
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

var everything, little = []string{"*"}, []string{"users:write", "users:read"}

type bundle struct {
	db       *pgxpool.Pool
	store    Store
	sessions *sessions.Service
	account  accounts.Account
	owner    accounts.User
	now      time.Time
	hash     func(context.Context, string, string) (string, error) // of passwords over HTTP; nil: as it is
}

// setup has an account with one owner.
func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{db: pgtest.Pool(t), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return b.now }
	b.store = Store{DB: b.db, Now: clock}
	b.sessions = sessions.New(sessions.Config{DB: b.db, Issuer: "i", Audience: "a", Now: clock})
	var err error
	if b.account, err = (accounts.Store{DB: b.db}).Create(t.Context(), "A", "pro"); err != nil {
		t.Fatal(err)
	}
	b.owner = b.join(t, "owner@example.com", accounts.Owner)
	return b
}

func (b *bundle) join(t *testing.T, email, role string) accounts.User {
	t.Helper()
	i, err := b.store.Invite(t.Context(), b.account.ID, email, role, everything)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := sessions.HashPassword(t.Context(), "correct horse", "")
	if err != nil {
		t.Fatal(err)
	}
	u, err := b.store.Accept(t.Context(), i.Token, hash)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestFromInvitationToSignIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	i, err := b.store.Invite(t.Context(), b.account.ID, "Ann@Example.com", accounts.Member, little)
	if err != nil || i.Status != "invited" || i.Email != "ann@example.com" || !i.ExpiresAt.Equal(b.now.Add(InvitationLife)) {
		t.Fatalf("%+v %v", i, err)
	}
	signIn := func() error {
		_, err := b.sessions.SignIn(t.Context(), "ann@example.com", "correct horse", "192.0.2.1")
		return err
	}
	if err := signIn(); apierror.Code(err) != decision.AuthRequired {
		t.Fatalf("before the invitation is accepted: %v", err)
	}
	hash, err := sessions.HashPassword(t.Context(), "correct horse", "")
	if err != nil {
		t.Fatal(err)
	}
	if u, err := b.store.Accept(t.Context(), i.Token, hash); err != nil || u.Status != "active" || u.ID != i.ID {
		t.Fatalf("%+v %v", u, err)
	}
	if err := signIn(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Accept(t.Context(), i.Token, hash); apierror.Code(err) != decision.InvalidRequest {
		t.Fatalf("accepted twice: %v", err)
	}
}

func TestAnInvitationEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	i, err := b.store.Invite(t.Context(), b.account.ID, "ann@example.com", accounts.Member, little)
	if err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(InvitationLife)
	if _, err := b.store.Accept(t.Context(), i.Token, "x"); apierror.Code(err) != decision.InvalidRequest {
		t.Fatal(err)
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, account := t.Context(), b.account.ID
	member, admin := b.join(t, "m@example.com", accounts.Member), b.join(t, "a@example.com", accounts.Admin)
	invite := func(email, role string, by []string) error {
		_, err := b.store.Invite(ctx, account, email, role, by)
		return err
	}
	setRole := func(id, role string, by []string) error {
		_, err := b.store.SetRole(ctx, account, id, role, by)
		return err
	}
	for _, c := range []struct {
		name string
		err  error
		want decision.Code
	}{
		{"a little one invites a member", invite("1@example.com", accounts.Member, little), ""},
		{"a little one invites an admin", invite("2@example.com", accounts.Admin, little), decision.ScopeMissing},
		{"a little one makes itself owner", setRole(member.ID, accounts.Owner, little), decision.ScopeMissing},
		{"a little one demotes an admin", setRole(admin.ID, accounts.Member, little), decision.ScopeMissing},
		{"a little one removes an admin", b.store.Remove(ctx, account, admin.ID, little), decision.ScopeMissing},
		{"the last owner steps down", setRole(b.owner.ID, accounts.Member, everything), decision.Conflict},
		{"the last owner is removed", b.store.Remove(ctx, account, b.owner.ID, everything), decision.Conflict},
		{"another account's user", b.store.Remove(ctx, "acct_0000000000000", member.ID, everything), decision.NotFound},
		{"an address twice", invite("m@example.com", accounts.Member, little), decision.Conflict},
		{"an unknown role", setRole(member.ID, "king", everything), decision.InvalidRequest},
		{"a bad address and role", invite("m", "king", everything), decision.InvalidRequest},
		{"an invited owner does not count", invite("3@example.com", accounts.Owner, everything), ""},
		{"the last active owner is removed", b.store.Remove(ctx, account, b.owner.ID, everything), decision.Conflict},
		{"a member becomes owner", setRole(member.ID, accounts.Owner, everything), ""},
		{"one of two owners is removed", b.store.Remove(ctx, account, b.owner.ID, everything), ""},
	} {
		if apierror.Code(c.err) != c.want {
			t.Errorf("%s: %v, want %q", c.name, c.err, c.want)
		}
	}
}

func TestAnAccountHasRoomForSoMany(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.db.Exec(t.Context(), `INSERT INTO users (id, account_id, email, role, password_hash)
		SELECT 'user_' || n, $1, n || '@example.com', 'member', 'x' FROM generate_series(2, $2::int) n`, b.account.ID, MaxPeople)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Invite(t.Context(), b.account.ID, "more@example.com", accounts.Member, little); apierror.Code(err) != decision.Conflict {
		t.Fatal(err)
	}
}

func TestTwoOwnersCannotRemoveEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.join(t, "o@example.com", accounts.Owner)
	codes := make(chan decision.Code, 2)
	var g errgroup.Group
	for _, id := range []string{b.owner.ID, other.ID} {
		g.Go(func() error {
			codes <- apierror.Code(b.store.Remove(t.Context(), b.account.ID, id, everything))
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	first, second := <-codes, <-codes
	if first == second || first+second != decision.Conflict {
		t.Fatalf("%q and %q", first, second)
	}
}

func TestAChangeOfRoleAndARemovalEndSessions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	u := b.join(t, "m@example.com", accounts.Member)
	session := func() string {
		s, err := b.sessions.Create(t.Context(), u.ID)
		if err != nil {
			t.Fatal(err)
		}
		return s.Token
	}
	ended := func(token string) bool {
		_, err := b.sessions.Verify(t.Context(), token)
		return apierror.Code(err) == decision.InvalidToken
	}
	first := session()
	if _, err := b.store.SetRole(t.Context(), b.account.ID, u.ID, accounts.Member, little); err != nil || ended(first) {
		t.Fatalf("the same role again ended the session: %v", err)
	}
	if _, err := b.store.SetRole(t.Context(), b.account.ID, u.ID, accounts.Admin, everything); err != nil || !ended(first) {
		t.Fatalf("the session outlives the role: %v", err)
	}
	second := session()
	if err := b.store.Remove(t.Context(), b.account.ID, u.ID, everything); err != nil || !ended(second) {
		t.Fatalf("the session outlives its user: %v", err)
	}
	var records int
	if err := b.db.QueryRow(t.Context(), `SELECT count(*) FROM edge_records WHERE get_byte(record, 16) = $1`, keytable.KindToken).Scan(&records); err != nil || records != 2 {
		t.Fatalf("edges were told of %d sessions, %v", records, err)
	}
	if _, err := b.sessions.Create(t.Context(), u.ID); apierror.Code(err) != decision.NotFound {
		t.Fatalf("a removed user has a new session: %v", err)
	}
	if again := b.join(t, "m@example.com", accounts.Member); again.ID == u.ID {
		t.Fatal("the address is not free again")
	}
	if _, total, err := paging.Rows(b.store.Page(t.Context(), b.account.ID, paging.Page{Limit: 10})); total != 2 || err != nil {
		t.Fatalf("%d people, %v", total, err)
	}
}

// Nobody learns from an invitation who has an account elsewhere, and nobody keeps an
// address from others by inviting it.
func TestAnAddressBelongsToWhoSignsInWithIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	other, err := (accounts.Store{DB: b.db}).Create(ctx, "B", "pro")
	if err != nil {
		t.Fatal(err)
	}
	known, err := b.store.Invite(ctx, other.ID, b.owner.Email, accounts.Member, little)
	unknown, err2 := b.store.Invite(ctx, other.ID, "nobody@example.com", accounts.Member, little)
	if err != nil || err2 != nil || known.Status != unknown.Status || !known.ExpiresAt.Equal(unknown.ExpiresAt) {
		t.Fatalf("%+v %v; %+v %v", known, err, unknown, err2)
	}
	if _, err := b.store.Invite(ctx, other.ID, "nobody@example.com", accounts.Member, little); apierror.Code(err) != decision.Conflict {
		t.Errorf("the same account invites the same address twice: %v", err)
	}
	if _, err := b.store.Accept(ctx, known.Token, "x"); apierror.Code(err) != decision.Conflict {
		t.Errorf("two people sign in with one address: %v", err)
	}
	mine, err := b.store.Invite(ctx, b.account.ID, "nobody@example.com", accounts.Member, little)
	if err != nil {
		t.Fatalf("an open invitation elsewhere is in the way: %v", err)
	}
	if u, err := b.store.Accept(ctx, mine.Token, "x"); err != nil || u.Account != b.account.ID {
		t.Fatalf("%+v %v", u, err)
	}
	if _, err := b.store.Accept(ctx, unknown.Token, "x"); apierror.Code(err) != decision.Conflict {
		t.Errorf("the address was accepted already: %v", err)
	}
	found, err := accounts.Store{DB: b.db}.UserByEmail(ctx, "nobody@example.com")
	if err != nil || found.ID != mine.ID {
		t.Errorf("%+v %v", found, err)
	}
	if err := b.store.Remove(ctx, b.account.ID, mine.ID, everything); err != nil {
		t.Fatal(err)
	}
	if u, err := b.store.Accept(ctx, unknown.Token, "x"); err != nil || u.Account != other.ID {
		t.Errorf("the address is free again: %+v %v", u, err)
	}
}

// Guesses at invitations cost no hash, and a network has as many as of passwords.
func TestStrangersMayNotHaveHashesComputed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.hash = func(context.Context, string, string) (string, error) { t.Error("hashed"); return "", nil }
	guess := func() int {
		status, _ := b.call("POST", "/v1/auth/invitations/accept", `{"token":"inv_unknown","password":"correct horse"}`)
		return status
	}
	for range 100 {
		if status := guess(); status != 400 {
			t.Fatal(status)
		}
	}
	if status := guess(); status != 429 {
		t.Errorf("the 101st: %d", status)
	}
	if _, err := b.sessions.SignIn(t.Context(), b.owner.Email, "correct horse", "192.0.2.1"); apierror.Code(err) != decision.RateLimited {
		t.Errorf("guesses are counted apart from those of sign-ins: %v", err)
	}
	if _, err := b.sessions.SignIn(t.Context(), b.owner.Email, "correct horse", "198.51.100.7"); err != nil {
		t.Error(err)
	}
}

func (b *bundle) call(method, path, body string, by ...string) (int, map[string]any) {
	a := API{Store: b.store, Sessions: b.sessions, HashPassword: b.hash, Respond: httpapi.Adapter{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}}
	r := chi.NewRouter()
	a.OpenRoutes(r)
	a.Routes(r, func(scope string) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Asked-For", scope)
				caller := identity.Caller{Account: b.account.ID, Key: "key_1", Scopes: by}
				next.ServeHTTP(w, r.WithContext(identity.With(r.Context(), caller)))
			})
		}
	})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	var v map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &v)
	if v == nil {
		v = map[string]any{}
	}
	v["asked for"] = w.Header().Get("Asked-For")
	return w.Code, v
}

func TestOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	status, i := b.call("POST", "/v1/users", `{"email":"ann@example.com","role":"member"}`, little...)
	if status != 201 || i["status"] != "invited" || i["asked for"] != "users:write" {
		t.Fatal(status, i)
	}
	token, id := i["invitation_token"].(string), "/v1/users/"+i["id"].(string)
	for _, c := range []struct {
		method, path, body string
		want               int
		scope              string
	}{
		{"POST", "/v1/auth/invitations/accept", `{"token":"` + token + `","password":"short"}`, 400, ""},
		{"POST", "/v1/auth/invitations/accept", `{"token":"` + strings.Repeat("x", 101) + `","password":"correct horse"}`, 400, ""},
		{"POST", "/v1/auth/invitations/accept", `{"token":"` + token + `","password":"correct horse"}`, 200, ""},
		{"POST", "/v1/auth/invitations/accept", `{"token":"` + token + `","password":"correct horse"}`, 400, ""},
		{"GET", "/v1/users", "", 200, "users:read"},
		{"GET", "/v1/users?limit=0", "", 400, "users:read"},
		{"GET", id, "", 200, "users:read"},
		{"GET", "/v1/users/user_0", "", 404, "users:read"},
		{"PATCH", id, `{"role":"admin"}`, 403, "users:write"},
		{"PATCH", id, `{"role":1}`, 400, "users:write"},
		{"DELETE", id, "", 204, "users:write"},
		{"DELETE", id, "", 404, "users:write"},
	} {
		if status, got := b.call(c.method, c.path, c.body, little...); status != c.want || got["asked for"] != c.scope {
			t.Errorf("%s %s %s: %d %v, want %d", c.method, c.path, c.body, status, got, c.want)
		}
	}
}
