package sessions

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/secretbox"
)

func box(t *testing.T, key string) *secretbox.Box {
	t.Helper()
	b, err := secretbox.New(strings.Repeat(key, secretbox.MinKey))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// plainKeys counts the keys that lie in Postgres as they are, of how many.
func (b bundle) plainKeys(t *testing.T) (plain, all int) {
	t.Helper()
	rows, _ := b.db.Query(t.Context(), `SELECT private_der FROM signing_keys`)
	stored, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stored {
		if isPlain(s) {
			plain++
		}
	}
	return plain, len(stored)
}

func TestSigningKeysAreSealed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := config(b.db, b.clock)
	c.Box = box(t, "a")
	s, err := New(c).Create(t.Context(), b.user.ID)
	if err != nil {
		t.Fatal(err)
	}
	if plain, all := b.plainKeys(t); plain != 0 || all != 1 {
		t.Fatalf("%d of %d keys lie open", plain, all)
	}
	if _, err := New(c).Verify(t.Context(), s.Token); err != nil {
		t.Fatal("another replica:", err)
	}
	c.Box = box(t, "b")
	if _, err := New(c).Verify(t.Context(), s.Token); !errors.Is(err, secretbox.ErrOpen) {
		t.Fatal("with another key:", err)
	}
	c.Box = nil
	if _, err := New(c).Verify(t.Context(), s.Token); err == nil {
		t.Fatal("without a key")
	}
}

func TestKeysOfBeforeAreReadAndSealed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old := b.signIn(t)
	if plain, _ := b.plainKeys(t); plain != 1 {
		t.Fatal("without a box a key is stored as it is")
	}
	c := config(b.db, b.clock)
	c.Box = box(t, "a")
	s := New(c)
	if _, err := s.Verify(t.Context(), old.Token); err != nil {
		t.Fatal("before it is sealed:", err)
	}
	for range 2 {
		if n, err := s.RotateSigningKey(t.Context()); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		if plain, all := b.plainKeys(t); plain != 0 || all != 1 {
			t.Fatalf("%d of %d keys lie open", plain, all)
		}
	}
	if _, err := New(c).Verify(t.Context(), old.Token); err != nil {
		t.Fatal("after it is sealed:", err)
	}
	b.clock.Advance(SigningKeyAge + time.Minute)
	if n, err := s.RotateSigningKey(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if plain, all := b.plainKeys(t); plain != 0 || all != 2 {
		t.Fatalf("%d of %d keys lie open after a rotation", plain, all)
	}
}

// While an upgrade may still be under way, replicas of before must be able to
// read every key: theirs, and those that replicas of now make.
func TestReplicasOfBeforeReadEveryKeyDuringAnUpgrade(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token := b.signIn(t).Token
	end := b.clock.Now().Add(SigningKeyAge + 24*time.Hour)
	// What migration 0028 does where it finds a key that lies open.
	if _, err := b.db.Exec(t.Context(), `UPDATE signing_keys SET seal_after = $1`, end); err != nil {
		t.Fatal(err)
	}
	c := config(b.db, b.clock)
	c.Box = box(t, "a")
	now, before := New(c), b.service // without a box it reads as releases of before do
	rotate := func(wantAdded, wantPlain, wantAll int) {
		t.Helper()
		if n, err := now.RotateSigningKey(t.Context()); n != wantAdded || err != nil {
			t.Fatal(n, err)
		}
		if plain, all := b.plainKeys(t); plain != wantPlain || all != wantAll {
			t.Fatalf("%d of %d keys lie open, want %d of %d", plain, all, wantPlain, wantAll)
		}
	}
	rotate(0, 1, 1)
	if _, err := before.Verify(t.Context(), token); err != nil {
		t.Fatal("a replica of before:", err)
	}
	b.clock.Advance(SigningKeyAge + time.Minute)
	rotate(1, 2, 2)
	b.clock.Advance(publishLead)
	fresh, err := now.Create(t.Context(), b.user.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := before.Verify(t.Context(), fresh.Token); err != nil {
		t.Fatal("a replica of before, by a key of now:", err)
	}
	b.clock.Set(end)
	rotate(0, 0, 2)
}

func TestStoredKeysThatAreNone(t *testing.T) {
	t.Parallel()
	k := &Keyring{Box: box(t, "a")}
	for name, stored := range map[string][]byte{
		"nothing":         nil,
		"broken DER":      {derSequence, 1, 2},
		"broken":          {1, 2, 3},
		"another row's":   k.storedForm("other", []byte{derSequence}, false),
		"sealed, not DER": k.storedForm("kid", []byte("hush"), false),
	} {
		if private, err := k.Private("kid", stored); err == nil || private != nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v %v", name, private, err)
		}
	}
}
