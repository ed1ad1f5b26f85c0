package apikey

import (
	"strings"
	"testing"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/limits/growth"
)

func random(fill byte) (r [SecretBytes]byte) {
	for i := range r {
		r[i] = fill + byte(i)
	}
	return r
}

func TestKeyText(t *testing.T) {
	t.Parallel()
	key := FormatKey(42, random(7))
	if len(key) != KeyLen || !WellFormed(key) {
		t.Fatalf("%q of %d", key, len(key))
	}
	if id := keytable.FormatID("", 42); !strings.HasPrefix(key, "slk_"+id+"_") {
		t.Fatalf("%q does not show its id %s", key, id)
	}
	if FormatKey(42, random(8)) == key || FormatKey(43, random(7)) == key {
		t.Fatal("two keys have the same text")
	}
}

// Any one character changed, any two neighbours swapped: refused without a look-up.
func TestMistypedKeysAreRefused(t *testing.T) {
	t.Parallel()
	key := FormatKey(1<<60+5, random(99))
	for i := range key {
		for _, c := range []byte("0Az_~ ") {
			if bad := key[:i] + string(c) + key[i+1:]; bad != key && WellFormed(bad) {
				t.Errorf("%q passes", bad)
			}
		}
		if i > 0 && key[i] != key[i-1] {
			if bad := key[:i-1] + string(key[i]) + string(key[i-1]) + key[i+1:]; WellFormed(bad) {
				t.Errorf("%q passes", bad)
			}
		}
	}
	for _, bad := range []string{"", key[:KeyLen-1], key + "0", "sk_live_abc", strings.Repeat("a", KeyLen)} {
		if WellFormed(bad) {
			t.Errorf("%q passes", bad)
		}
	}
}

func TestBearer(t *testing.T) {
	t.Parallel()
	cases := []struct {
		header, credential string
		want               decision.Code
	}{
		{"Bearer abc", "abc", ""},
		{"bearer abc", "abc", ""},
		{"BEARER a.b-c~d+e/f=", "a.b-c~d+e/f=", ""},
		{"", "", decision.AuthRequired},
		{"Bearer", "", decision.InvalidKey},
		{"Bearer ", "", decision.InvalidKey},
		{"Bearer  abc", "", decision.InvalidKey},
		{"Basic abc", "", decision.InvalidKey},
		{"Bearer abc,Bearer def", "", decision.InvalidKey},
		{"Bearer abc def", "", decision.InvalidKey},
		{"Bearer a\x00b", "", decision.InvalidKey},
		{"Bearer \u00e9", "", decision.InvalidKey},
		{"Bearer " + strings.Repeat("a", maxHeader), "", decision.InvalidKey},
	}
	for _, c := range cases {
		got, d := Bearer(c.header)
		if got != c.credential || d.Code != c.want {
			t.Errorf("%.40q: %q %q, want %q %q", c.header, got, d.Code, c.credential, c.want)
		}
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	key := keytable.Record{Kind: keytable.KindKey, Expires: 1000}
	const found, ready, absent, loading = true, true, false, false
	cases := map[string]struct {
		r            keytable.Record
		found, ready bool
		now          int64
		want         decision.Code
	}{
		"good":                      {key, found, ready, 999, ""},
		"good, table still loading": {key, found, loading, 999, ""},
		"at its end":                {key, found, ready, 1000, decision.TokenExpired},
		"unknown":                   {keytable.Record{}, absent, ready, 0, decision.InvalidKey},
		"not loaded yet":            {keytable.Record{}, absent, loading, 0, decision.EdgeNotReady},
		"a record of another kind":  {keytable.Record{Kind: keytable.KindSecret}, found, ready, 0, decision.InvalidKey},
	}
	for name, c := range cases {
		d := Decide(c.r, c.found, c.ready, c.now)
		if d.Code != c.want || (c.want == decision.EdgeNotReady) != (d.RetryAfter > 0) {
			t.Errorf("%s: %+v, want %q", name, d, c.want)
		}
	}
}

func TestStanding(t *testing.T) {
	t.Parallel()
	for flags, want := range map[uint8]decision.Code{
		0:                   "",
		keytable.FlagLimits: "",
		keytable.FlagUnpaid: decision.Unpaid,
		keytable.FlagQuotaUsed | keytable.FlagAllowlist: decision.QuotaUsed,
		keytable.FlagUnpaid | keytable.FlagQuotaUsed:    decision.Unpaid,
	} {
		if d := Standing(flags); d.Code != want {
			t.Errorf("%b: %q, want %q", flags, d.Code, want)
		}
	}
}

func FuzzWellFormed(f *testing.F) {
	f.Add(FormatKey(1, random(1)))
	f.Add("slk_")
	f.Fuzz(func(t *testing.T, s string) {
		growth.Linear(t, len(s), 0, 1<<10, func() { WellFormed(s) })
		if WellFormed(s) && string(appendSum([]byte(s[:sumAt]))) != s {
			t.Fatalf("%q", s)
		}
	})
}

func FuzzBearer(f *testing.F) {
	f.Add("Bearer abc")
	f.Fuzz(func(t *testing.T, s string) {
		growth.Linear(t, len(s), 0, 1<<10, func() { Bearer(s) })
		c, d := Bearer(s)
		if d.OK() != (c != "") || strings.ContainsAny(c, " ,\t\r\n") {
			t.Fatalf("%q: %q %v", s, c, d)
		}
	})
}

func TestBare(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]decision.Code{
		"abc": "", "a.b-c~d+e/f=": "", "abc,def": decision.InvalidKey, "Bearer abc": decision.InvalidKey, "a\x00b": decision.InvalidKey,
		strings.Repeat("a", maxHeader+1): decision.InvalidKey,
	} {
		if got, d := Bare("x-api-key", header); d.Code != want || d.OK() && got != header {
			t.Errorf("%.40q: %q %q, want %q", header, got, d.Code, want)
		}
	}
}

func TestWhatMayBeImported(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		strings.Repeat("a", MinImported): true, strings.Repeat("a", MaxImported): true, strings.Repeat("a", MinImported-1): false,
		strings.Repeat("a", MaxImported+1): false, strings.Repeat("a b", 10): false, strings.Repeat("a,b", 10): false, "": false,
	} {
		if Importable(text) != want {
			t.Errorf("%.40q: %v", text, !want)
		}
	}
	for text, want := range map[string]bool{"eyJhbGciOiJ9.e30.": true, "ewog.e30.": true, "eyJhbGciOiJ9": false, "SG.abc.def": false, "": false, "e": false} {
		if LooksLikeToken(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func FuzzImportable(f *testing.F) {
	f.Add("kong_0123456789abcdef")
	f.Fuzz(func(t *testing.T, s string) {
		growth.Linear(t, len(s), 0, 1<<10, func() { _, _ = Importable(s), LooksLikeToken(s); Bare("x-api-key", s) })
		if _, d := Bare("x-api-key", s); Importable(s) && !d.OK() {
			t.Fatalf("%q", s)
		}
	})
}
