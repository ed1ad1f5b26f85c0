package secretbox

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

var keyA, keyB = strings.Repeat("a", MinKey), strings.Repeat("b", MinKey)

func box(t *testing.T, keys ...string) *Box {
	t.Helper()
	b, err := New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOpensWhatItSealed(t *testing.T) {
	t.Parallel()
	b := box(t, keyA)
	one, two := b.Seal([]byte("hush"), "wh_1"), b.Seal([]byte("hush"), "wh_1")
	if bytes.Equal(one, two) || bytes.Contains(one, []byte("hush")) {
		t.Fatal("the same secret twice gives the same bytes, or shows itself")
	}
	for _, sealed := range [][]byte{one, two} {
		if plain, err := b.Open(sealed, "wh_1"); err != nil || string(plain) != "hush" {
			t.Fatalf("%q %v", plain, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	b := box(t, keyA)
	sealed := b.Seal([]byte("hush"), "wh_1")
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"another row":     func() ([]byte, error) { return b.Open(sealed, "wh_2") },
		"another key":     func() ([]byte, error) { return box(t, keyB).Open(sealed, "wh_1") },
		"a changed byte":  func() ([]byte, error) { return b.Open(changed, "wh_1") },
		"nothing":         func() ([]byte, error) { return b.Open(nil, "wh_1") },
		"a short one":     func() ([]byte, error) { return b.Open(sealed[:5], "wh_1") },
		"another version": func() ([]byte, error) { return b.Open(append([]byte{9}, sealed[1:]...), "wh_1") },
	} {
		if plain, err := open(); !errors.Is(err, ErrOpen) || plain != nil {
			t.Errorf("%s: %q, %v", name, plain, err)
		}
	}
}

func TestOldKeyStillOpensWhileTheNewOneSeals(t *testing.T) {
	t.Parallel()
	old := box(t, keyA).Seal([]byte("hush"), "wh_1")
	both := box(t, keyB, keyA)
	if plain, err := both.Open(old, "wh_1"); err != nil || string(plain) != "hush" {
		t.Fatalf("%q %v", plain, err)
	}
	if both.Current(old, "wh_1") || !both.Current(both.Seal([]byte("x"), "wh_1"), "wh_1") || !box(t, keyA, keyB).Current(old, "wh_1") {
		t.Error("it is not told by which key a value was sealed")
	}
	if _, err := box(t, keyB).Open(both.Seal([]byte("x"), "wh_1"), "wh_1"); err != nil {
		t.Fatalf("the first key does not seal: %v", err)
	}
}

func TestNewRefusesWeakKeys(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{nil, {""}, {"short"}, {keyA, "short"}} {
		if _, err := New(keys...); err == nil {
			t.Errorf("%q is accepted", keys)
		}
	}
	box(t, NewKey())
}

func FuzzOpen(f *testing.F) {
	b, err := New(keyA)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b.Seal([]byte("x"), "r"), "r")
	f.Add([]byte{version}, "")
	f.Fuzz(func(t *testing.T, sealed []byte, row string) {
		if plain, err := b.Open(sealed, row); err == nil && row != "r" {
			t.Errorf("%q opens for %q", plain, row)
		}
	})
}
