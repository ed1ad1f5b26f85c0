package sessions

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/clock/clocktest"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

const password = "correct horse"

type bundle struct {
	db      *pgxpool.Pool
	clock   *clocktest.Clock
	service *Service
	user    accounts.User
}

func config(db *pgxpool.Pool, c *clocktest.Clock) Config {
	return Config{DB: db, Issuer: "iss", Audience: "aud", TTL: time.Hour, Now: c.Now}
}

func setup(t *testing.T) bundle {
	t.Helper()
	db, c := pgtest.Pool(t), clocktest.New(at)
	a, err := accounts.Store{DB: db}.Create(t.Context(), "A", "local")
	if err != nil {
		t.Fatal(err)
	}
	b := bundle{db: db, clock: c, service: New(config(db, c))}
	b.user = b.addUser(t, a.ID, "ann@example.com", accounts.Owner)
	return b
}

func (b bundle) addUser(t *testing.T, account, email, role string) accounts.User {
	t.Helper()
	hash, err := HashPassword(t.Context(), password, "")
	if err != nil {
		t.Fatal(err)
	}
	u, err := accounts.Store{DB: b.db}.AddUser(t.Context(), account, email, role, hash)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (b bundle) signIn(t *testing.T) Session {
	t.Helper()
	s, err := b.service.SignIn(t.Context(), " Ann@Example.com", password, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSignInGivesATokenThatVerifies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.signIn(t)
	c, err := b.service.Verify(t.Context(), s.Token)
	if err != nil || c.ID != s.ID || c.Subject != b.user.ID || c.Account != b.user.Account || !slices.Equal(c.Scopes, []string{"*"}) {
		t.Fatalf("%+v %v", c, err)
	}
	if s.ExpiresIn != 3600 || !s.ExpiresAt.Equal(at.Add(time.Hour)) || !c.ExpiresAt.Equal(s.ExpiresAt) {
		t.Fatalf("%+v", s)
	}
	b.clock.Set(at.Add(time.Hour))
	if _, err := b.service.Verify(t.Context(), s.Token); apierror.Code(err) != decision.TokenExpired {
		t.Fatalf("after its end: %v", err)
	}
}

func TestMembersHaveNoPowerOverPeopleAndMoney(t *testing.T) {
	t.Parallel()
	b := setup(t)
	u := b.addUser(t, b.user.Account, "bob@example.com", accounts.Member)
	s, err := b.service.Create(t.Context(), u.ID)
	if err != nil {
		t.Fatal(err)
	}
	for scope, want := range map[string]bool{"streams:write": true, "users:read": true, "users:write": false, "billing:write": false, "*": false, "streams:*": false} {
		if slices.Contains(s.Scopes, scope) != want {
			t.Errorf("%s: %v", scope, !want)
		}
	}
}

func TestUnknownUserAndWrongPasswordLookTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, unknown := b.service.SignIn(t.Context(), "eve@example.com", password, "192.0.2.1")
	_, wrong := b.service.SignIn(t.Context(), "ann@example.com", "wrong horse", "192.0.2.1")
	if apierror.Code(wrong) != decision.AuthRequired || unknown.Error() != wrong.Error() {
		t.Fatalf("%v; %v", unknown, wrong)
	}
}

// All at once, so that each must be counted before it is judged.
func TestAttemptsAreLimited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	codes := make(chan decision.Code, 3*perPair)
	var g errgroup.Group
	for range cap(codes) {
		g.Go(func() error {
			_, err := b.service.SignIn(t.Context(), "ann@example.com", "wrong", "192.0.2.1")
			codes <- apierror.Code(err)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	close(codes)
	count := map[decision.Code]int{}
	for c := range codes {
		count[c]++
	}
	if count[decision.AuthRequired] != perPair || count[decision.RateLimited] != 2*perPair {
		t.Fatalf("%v", count)
	}
	if _, err := b.service.SignIn(t.Context(), "ann@example.com", password, "192.0.2.1"); apierror.Code(err) != decision.RateLimited {
		t.Errorf("the right password from the guesser's address: %v", err)
	}
	if _, err := b.service.SignIn(t.Context(), "ann@example.com", password, "198.51.100.7"); err != nil {
		t.Errorf("the owner, from elsewhere: %v", err)
	}
	b.clock.Set(at.Add(attemptWindow))
	if _, err := b.service.SignIn(t.Context(), "ann@example.com", password, "192.0.2.1"); err != nil {
		t.Errorf("in the next window: %v", err)
	}
}

func TestASuccessStartsTheCountAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3 {
		for range perPair - 1 {
			if _, err := b.service.SignIn(t.Context(), "ann@example.com", "wrong", "192.0.2.1"); apierror.Code(err) != decision.AuthRequired {
				t.Fatal(err)
			}
		}
		b.signIn(t)
	}
}

// fail guesses at a password from so many networks, as often from each.
func (b *bundle) fail(t *testing.T, networks, each int) {
	t.Helper()
	for n := range networks {
		for range each {
			_, err := countSignIn(t.Context(), b.db, "ann@example.com", fmt.Sprintf("198.51.100.%d", n), b.clock.Now())
			if err != nil && apierror.Code(err) != decision.RateLimited {
				t.Fatal(err)
			}
		}
	}
}

func TestStrangersDoNotLockTheOwnerOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	from := func(address, given string) decision.Code {
		_, err := b.service.SignIn(t.Context(), "ann@example.com", given, address)
		return apierror.Code(err)
	}
	if got := from("192.0.2.1", password); got != "" {
		t.Fatal(got)
	}
	b.fail(t, 12, perPair)
	if got := from("203.0.113.1", password); got != decision.RateLimited {
		t.Errorf("from a network that nobody has seen: %q", got)
	}
	for range perPair {
		if got := from("192.0.2.1", "wrong"); got != decision.AuthRequired {
			t.Errorf("a slip of the owner: %q", got)
		}
	}
	if got := from("192.0.2.1", password); got != decision.RateLimited {
		t.Errorf("who guesses from the owner's network: %q", got)
	}
	b.clock.Set(at.Add(attemptWindow))
	if got := from("192.0.2.1", password); got != "" {
		t.Errorf("in the next window: %q", got)
	}
	if _, err := b.service.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.clock.Set(at.Add(knownFor - time.Second))
	b.fail(t, 12, perPair)
	if got := from("192.0.2.1", password); got != "" {
		t.Errorf("four weeks later: %q", got)
	}
	b.clock.Advance(knownFor + time.Second)
	b.fail(t, 12, perPair)
	if got := from("192.0.2.1", password); got != decision.RateLimited {
		t.Errorf("when it was forgotten: %q", got)
	}
}

// Whoever is limited makes no further rows, and does not shut out the network.
func TestRowsOfAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 3 * perAddress {
		_, err := countSignIn(t.Context(), b.db, fmt.Sprintf("%d@example.com", n), "192.0.2.1", at)
		if limited := apierror.Code(err) == decision.RateLimited; limited != (n >= perAddress) {
			t.Fatalf("attempt %d: %v", n, err)
		}
	}
	for range 3 * perAddress {
		_, err := countSignIn(t.Context(), b.db, "ann@example.com", "192.0.2.2", at)
		if err != nil && apierror.Code(err) != decision.RateLimited {
			t.Fatal(err)
		}
	}
	var rows int
	if err := b.db.QueryRow(t.Context(), `SELECT count(*) FROM sign_in_attempts`).Scan(&rows); err != nil || rows > 1+2*perAddress+3 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if _, err := countSignIn(t.Context(), b.db, "bob@example.com", "192.0.2.2", at); err != nil {
		t.Errorf("a neighbour of who guesses at one: %v", err)
	}
}

// Whoever goes on at once is refused from memory: the row of the network is not
// changed for each attempt, and the next second is judged anew.
func TestRefusalsAreRemembered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	guess := func(n int) decision.Code {
		_, err := b.service.reserveSignIn(t.Context(), fmt.Sprintf("%d@example.com", n), "192.0.2.1")
		return apierror.Code(err)
	}
	failures := func() (n int) {
		network := ofAddress("192.0.2.1")
		if err := b.db.QueryRow(t.Context(), `SELECT failures FROM sign_in_attempts WHERE subject = $1`, network.hash[:]).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for n := range 3 * perAddress {
		if got := guess(n); (got == decision.RateLimited) != (n >= perAddress) {
			t.Fatalf("attempt %d: %q", n, got)
		}
	}
	if n := failures(); n != perAddress+1 {
		t.Errorf("the row was changed %d times", n)
	}
	if _, err := b.service.Attempt(t.Context(), "192.0.2.1"); apierror.Code(err) != decision.RateLimited {
		t.Errorf("an invitation from there: %v", err)
	}
	b.clock.Advance(refusedFor)
	if got := guess(0); got != decision.RateLimited || failures() != perAddress+2 {
		t.Errorf("a second later: %q, %d changes", got, failures())
	}
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "nonsense": "nonsense"} {
		if got := networkOf(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestAnEndedSessionIsRevokedEverywhereThenForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, kept := b.signIn(t), b.signIn(t)
	if err := b.service.End(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	tag := keytable.TagOfToken(s.ID)
	record := func() (raw []byte) {
		if err := b.db.QueryRow(t.Context(), `SELECT record FROM edge_records WHERE tag = $1`, tag[:]).Scan(&raw); err != nil {
			t.Fatal(err)
		}
		return raw
	}
	want := keytable.Record{Tag: tag, Kind: keytable.KindToken, Expires: uint32(s.ExpiresAt.Unix())}
	if r, ok := keytable.Decode(record()); !ok || r != want {
		t.Fatalf("%+v, want %+v", r, want)
	}
	_, verified := b.service.Verify(t.Context(), s.Token)
	again := b.service.End(t.Context(), s.ID)
	if apierror.Code(verified) != decision.InvalidToken || apierror.Code(again) != decision.NotFound {
		t.Fatalf("%v; %v", verified, again)
	}
	if _, err := b.service.Verify(t.Context(), kept.Token); err != nil {
		t.Fatalf("the other session ended too: %v", err)
	}
	b.clock.Set(at.Add(2 * time.Hour))
	if n, err := b.service.Purge(t.Context()); n != 2 || err != nil {
		t.Fatalf("%d %v", n, err)
	}
	var counts int
	if err := b.db.QueryRow(t.Context(), `SELECT count(*) FROM sign_in_attempts WHERE known_until IS NULL`).Scan(&counts); err != nil || counts != 0 {
		t.Fatalf("%d counts of old sign-ins are left, %v", counts, err)
	}
	if record() != nil {
		t.Fatal("edges keep the record of a token that has run out")
	}
}

func TestKeyRotationFailsNoLiveToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	replica := New(config(b.db, b.clock))
	first := b.signIn(t)
	b.clock.Set(at.Add(10 * time.Minute))
	if added, err := b.service.Keyring.Rotate(t.Context(), 11*time.Minute, time.Hour); added || err != nil {
		t.Fatalf("a young key was replaced: %v %v", added, err)
	}
	if added, err := b.service.Keyring.Rotate(t.Context(), 9*time.Minute, time.Hour); !added || err != nil {
		t.Fatal(added, err)
	}
	set, err := b.service.Keyring.Public(t.Context())
	if err != nil || len(set.Keys) != 2 {
		t.Fatalf("%+v %v", set, err)
	}
	signerIs := func(want string) {
		t.Helper()
		if key, err := b.service.Keyring.signer(t.Context()); err != nil || key.kid != want {
			t.Fatalf("signs with %s, want %s: %v", key.kid, want, err)
		}
	}
	signerIs(set.Keys[1].ID) // until everyone has had time to read the new one
	b.clock.Advance(publishLead)
	signerIs(set.Keys[0].ID)
	second := b.signIn(t)
	for _, token := range []string{first.Token, second.Token} {
		if _, err := replica.Verify(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
	b.clock.Advance(time.Hour + publishLead)
	if set, err = b.service.Keyring.Public(t.Context()); err != nil || len(set.Keys) != 1 {
		t.Fatalf("the old key is still published: %+v %v", set, err)
	}
}

// After a leak nothing verifies that an old key has signed, as soon as the new one
// signs: also with a key that was on its way out already.
func TestALeakedKeyIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.signIn(t)
	b.clock.Advance(10 * time.Minute)
	if _, err := b.service.Keyring.Rotate(t.Context(), time.Minute, time.Hour); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(publishLead)
	second := b.signIn(t)
	if err := b.service.Keyring.Replace(t.Context()); err != nil {
		t.Fatal(err)
	}
	replica := New(config(b.db, b.clock))
	verifies := func(want bool, tokens ...Session) {
		t.Helper()
		for i, s := range tokens {
			if _, err := replica.Verify(t.Context(), s.Token); (err == nil) != want {
				t.Errorf("token %d: %v", i, err)
			}
		}
	}
	verifies(true, first, second) // until edges know the new one
	b.clock.Advance(publishLead + keyringTTL)
	verifies(false, first, second)
	verifies(true, b.signIn(t))
	if set, err := replica.Keyring.Public(t.Context()); err != nil || len(set.Keys) != 1 {
		t.Errorf("%+v %v", set, err)
	}
}

func TestReplicasThatRotateTogetherAddOneKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.signIn(t)
	b.clock.Set(at.Add(SigningKeyAge))
	added := make(chan int, 8)
	g, ctx := errgroup.WithContext(t.Context())
	for range cap(added) {
		g.Go(func() error {
			n, err := New(config(b.db, b.clock)).RotateSigningKey(ctx)
			added <- n
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	close(added)
	sum := 0
	for n := range added {
		sum += n
	}
	if set, err := New(config(b.db, b.clock)).Keyring.Public(t.Context()); sum != 1 || err != nil || len(set.Keys) != 2 {
		t.Fatalf("%d were added, %d are there, %v", sum, len(set.Keys), err)
	}
}

func TestReplicasThatStartTogetherMakeOneKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g, ctx := errgroup.WithContext(t.Context())
	for range 8 {
		g.Go(func() error { _, err := New(config(b.db, b.clock)).Keyring.Public(ctx); return err })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if set, err := b.service.Keyring.Public(t.Context()); err != nil || len(set.Keys) != 1 {
		t.Fatalf("%d keys %v", len(set.Keys), err)
	}
}
