package ident_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/media/api/ident"
)

func TestIdentifiersAreValidForTheirOwnPrefixOnly(t *testing.T) {
	t.Parallel()
	id := ident.New("strm")
	cases := map[string]bool{
		id:                  true,
		ident.New("rec"):    false,
		strings.ToUpper(id): false,
		id + "0":            false,
		id[:len(id)-1]:      false,
		"strm_" + strings.Repeat("u", ident.Length): false,
		"": false,
	}
	for id, want := range cases {
		if got := ident.Valid("strm", id); got != want {
			t.Errorf("Valid(%q) = %v", id, got)
		}
	}
	if id == ident.New("strm") {
		t.Error("the same identifier twice")
	}
}

func TestASecretMatchesItselfOnly(t *testing.T) {
	t.Parallel()
	a, b := ident.NewSecret("sk"), ident.NewSecret("sk")
	if !ident.Matches(a.Text, a.Hash) || ident.Matches(b.Text, a.Hash) || ident.Matches("", a.Hash) {
		t.Error("hash and text do not belong together")
	}
	if !strings.HasPrefix(a.Text, "sk_") || !strings.HasSuffix(a.Text, a.Hint) || len(a.Hint) != 4 {
		t.Errorf("%+v", a)
	}
}
