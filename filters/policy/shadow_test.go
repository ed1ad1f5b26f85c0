package policy

import (
	"reflect"
	"testing"

	"sluice.dev/sluice/filters/decision"
)

// A policy with shadows comes out as it went in, and says which classes answers show.
func TestShadowsComeOutAsTheyWentIn(t *testing.T) {
	t.Parallel()
	p := sample()
	p.AddShadows()
	p.Routes[0].Shadow, p.Routes[0].Class = ShadowScope|ShadowQuota, ShadowClass
	p.Routes[2].Auth, p.Routes[2].Class = AuthKey|AuthToken|AuthSession|AuthNone, 1+ShadowClass
	got := Parse(p.Encode())
	if got == nil || !reflect.DeepEqual(got.Routes[0].Shadow, ShadowScope|ShadowQuota) || got.Routes[0].Auth != AuthKey || got.Routes[1].Shadow != 0 {
		t.Fatalf("%+v", got)
	}
	if r := got.Routes[2]; r.Auth != p.Routes[2].Auth || r.Shadow != 0 {
		t.Errorf("%+v", r)
	}
	for class, want := range map[uint8]string{0: "default", 1: "events", ShadowClass: "", ShadowClass + 1: ""} {
		if got.Shown(class) != want {
			t.Errorf("class %d is shown as %q", class, got.Shown(class))
		}
	}
	for _, pl := range got.Plans {
		for i := range got.Enforced() {
			if pl.Limits[i] != pl.Limits[i+ShadowClass] || got.Classes[i] != got.Classes[i+ShadowClass] {
				t.Errorf("plan %s: class %d and its shadow differ", pl.Name, i)
			}
		}
	}
	if n := len(got.Enforced()); n != 2 {
		t.Errorf("%d classes are enforced", n)
	}
	again := *got
	again.AddShadows()
	if !reflect.DeepEqual(again.Classes, got.Classes) || !reflect.DeepEqual(again.Plans, got.Plans) {
		t.Error("shadows of a policy that has them differ")
	}
}

// Nothing but scopes and quotas is let pass, and only where it is said.
func TestWhatAShadowCovers(t *testing.T) {
	t.Parallel()
	for _, info := range decision.All() {
		for s := range ShadowScope | ShadowQuota + 1 {
			want := info.Code == decision.ScopeMissing && s&ShadowScope != 0 || info.Code == decision.QuotaUsed && s&ShadowQuota != 0
			if s.Covers(info.Code) != want {
				t.Errorf("%b and %s: %v", s, info.Code, !want)
			}
		}
	}
}
