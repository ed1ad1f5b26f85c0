package sessions

import (
	"context"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/growth"
)

func TestPasswordRoundTrip(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	stored, err := HashPassword(ctx, "correct horse", "")
	if err != nil || !strings.HasPrefix(stored, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatal(stored, err)
	}
	again, err := HashPassword(ctx, "correct horse", "")
	if err != nil || again == stored {
		t.Fatal("two hashes of a password are the same: no salt", err)
	}
	for password, want := range map[string]bool{"correct horse": true, "Correct horse": false, "": false, "correct horse ": false} {
		if ok, err := passwordIs(ctx, "", stored, password); ok != want || err != nil {
			t.Errorf("%q: %v %v", password, ok, err)
		}
	}
	if ok, err := passwordIs(ctx, "", decoy, "anything"); ok || err != nil {
		t.Errorf("the decoy must be a hash that nothing meets: %v %v", ok, err)
	}
}

// The vector of the reference implementation's test.c: argon2id, v=19, t=2,
// m=2^8, p=1, "password", "somesalt".
func TestReferenceVector(t *testing.T) {
	t.Parallel()
	const stored = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	if ok, err := passwordIs(t.Context(), "", stored, "password"); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	for password, ok := range map[string]bool{"": false, "1234567": false, "12345678": true, "éééééééé": true, "ééééééé": false,
		strings.Repeat("a", 1024): true, strings.Repeat("a", 1025): false} {
		if got := CheckPassword(password) == nil; got != ok {
			t.Errorf("%.10q: %v", password, got)
		}
	}
}

func TestHashingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := HashPassword(ctx, "x", "192.0.2.1"); apierror.Code(err) != decision.Unavailable {
		t.Fatalf("a caller that went away is served all the same: %v", err)
	}
}

// One who asks for many hashes has one place: others do not wait for them.
func TestHashingIsShared(t *testing.T) {
	t.Parallel()
	greedy := "198.51.100.9"
	leave, err := hashing.Enter(t.Context(), atAddress(greedy))
	if err != nil {
		t.Fatal(err)
	}
	codes := make(chan decision.Code, 20)
	for range cap(codes) {
		go func() {
			_, err := HashPassword(t.Context(), "x", greedy)
			codes <- apierror.Code(err)
		}()
	}
	for range cap(codes) - 16 { // those for whom there is no room to wait
		if code := <-codes; code != decision.RateLimited {
			t.Errorf("%q", code)
		}
	}
	if _, err := HashPassword(t.Context(), "x", "192.0.2.77"); err != nil {
		t.Errorf("somebody else: %v", err)
	}
	leave()
	for range 16 {
		if code := <-codes; code != "" {
			t.Errorf("%q", code)
		}
	}
}

func FuzzParsePHC(f *testing.F) {
	f.Add(decoy)
	f.Add("$argon2id$v=19$m=99999999,t=2,p=1$c29tZXNhbHQ$c29tZXNhbHRzb21lc2FsdA")
	f.Add("$argon2i$v=19$m=8,t=1,p=1$$")
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$" + strings.Repeat("A", 50_000) + "$" + strings.Repeat("A", 50_000))
	f.Add(strings.Repeat("$", 50_000))
	f.Fuzz(func(t *testing.T, s string) {
		growth.Linear(t, len(s), 32, 4<<10, func() { _, _ = parsePHC(s) })
		if p, err := parsePHC(s); err == nil && (p.String() != s || !p.sane()) {
			t.Fatalf("%q became %q", s, p)
		}
	})
}
