package scopes

import (
	"strings"
	"testing"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
)

// bits numbers the scopes of these tests.
var bits = map[string]int{"*": 0, "streams:*": 1, "streams:read": 2, "streams:write": 3, "clips:*": 64, "clips:write": 127}

func set(names ...string) (s keytable.Scopes) {
	for _, n := range names {
		s = s.With(bits[n])
	}
	return s
}

func TestCoverage(t *testing.T) {
	t.Parallel()
	allow := func(needed string, held ...string) { check(t, true, needed, held) }
	deny := func(needed string, held ...string) { check(t, false, needed, held) }

	allow("streams:read", "streams:read")
	allow("streams:read", "streams:*")
	allow("streams:read", "*")
	allow("clips:write", "clips:*")
	allow("clips:write", "streams:read", "clips:write")
	deny("streams:read")
	deny("streams:read", "streams:write")
	deny("streams:write", "streams:read")
	deny("streams:read", "clips:*")
	deny("clips:write", "streams:*", "streams:write")
	deny("streams:*", "streams:read", "streams:write")
	deny("*", "streams:*", "clips:*")
}

func check(t *testing.T, want bool, needed string, held []string) {
	t.Helper()
	if got := Covers(held, needed); got != want {
		t.Errorf("names: %v covers %s: %v", held, needed, got)
	}
	d := Decide(set(held...), set(Grantors(needed)...), needed)
	if d.OK() != want {
		t.Errorf("bits: %v covers %s: %v", held, needed, d)
	}
	if !want && (d.Code != decision.ScopeMissing || d.Detail.Expected != needed) {
		t.Errorf("%v does not say that %s is missing", d, needed)
	}
}

func TestNoScopeNeeded(t *testing.T) {
	t.Parallel()
	if !Decide(keytable.Scopes{}, keytable.Scopes{}, "").OK() {
		t.Error("a route without a scope needs none")
	}
	if Decide(keytable.Scopes{}, keytable.Scopes{}, "streams:read").OK() {
		t.Error("a scope that has no bits lets nobody in")
	}
}

func TestForm(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"*", "streams:read", "streams:*", "a_1:b_2"} {
		if !Valid(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", "streams", ":", "streams:", ":read", "*:read", "*:*", "Streams:read", "a:b:c", "a b:c", "a:**", "a,b:c", strings.Repeat("a", 70) + ":b"} {
		if Valid(s) {
			t.Errorf("%q passes", s)
		}
	}
}

// Whatever is valid is covered by itself, by its wildcard and by Admin, and by
// nothing that is not among its grantors.
func FuzzCovers(f *testing.F) {
	f.Add("streams:read", "streams:*")
	f.Fuzz(func(t *testing.T, s, held string) {
		if !Valid(s) {
			return
		}
		if !Covers([]string{s}, s) || !Covers([]string{Admin}, s) {
			t.Fatalf("%q is not covered by itself and by *", s)
		}
		if held != s && held != Admin && !strings.HasSuffix(held, ":*") && Covers([]string{held}, s) {
			t.Fatalf("%q covers %q", held, s)
		}
	})
}
