package config

import (
	"strings"
	"testing"

	"sluice.dev/sluice/filters/policy"
)

// shadowed is a document of one route, changed by change.
func shadowed(change func(*Document, *Route)) Document {
	d := Document{Classes: []Class{{Name: "default", PerMinute: 60}, {Name: "clips", PerMinute: 5}}, Products: []Product{{Name: "shop", Upstream: "http://127.0.0.1:1"}}}
	r := Route{Name: "r", Path: "/v1/r", Product: "shop", Scope: "clips:write", Class: "clips"}
	if change != nil {
		change(&d, &r)
	}
	d.Routes = append(d.Routes, r)
	d, _ = d.Expand("")
	return d
}

// A route has in the shadow what it says, and its class's limit where the class says so;
// its revision follows, and a document without any has the policy of before.
func TestWhatIsInTheShadow(t *testing.T) {
	t.Parallel()
	plain := compilePolicy(t, shadowed(nil))
	was, _ := routeOf(plain, "r")
	if was.Shadow != 0 || was.Class != 1 || len(plain.Classes) != 2 {
		t.Fatalf("%+v of classes %v", was, plain.Classes)
	}
	seen := map[string]string{was.Revision: "nothing"}
	for name, c := range map[string]struct {
		change func(*Document, *Route)
		shadow policy.Shadow
		class  uint8
	}{
		"scope":     {func(_ *Document, r *Route) { r.Shadow = []string{"scope"} }, policy.ShadowScope, 1},
		"quota":     {func(_ *Document, r *Route) { r.Shadow = []string{"quota"} }, policy.ShadowQuota, 1},
		"limit":     {func(_ *Document, r *Route) { r.Shadow = []string{"limit"} }, 0, policy.ShadowClass + 1},
		"all three": {func(_ *Document, r *Route) { r.Shadow = []string{"quota", "limit", "scope"} }, policy.ShadowScope | policy.ShadowQuota, policy.ShadowClass + 1},
	} {
		d := shadowed(c.change)
		if f := d.Faults(); f != nil {
			t.Fatalf("%s: %v", name, f)
		}
		r, ok := routeOf(compilePolicy(t, d), "r")
		if !ok || r.Shadow != c.shadow || r.Class != c.class || r.Auth != policy.AuthKey {
			t.Errorf("%s: %+v", name, r)
		}
		if other := seen[r.Revision]; other != "" {
			t.Errorf("%s and %s have one revision", name, other)
		}
		seen[r.Revision] = name
		if !d.Shadows() || d.Equal(shadowed(nil)) || len(Diff(d, shadowed(nil))) != 1 {
			t.Errorf("%s: %v", name, Diff(d, shadowed(nil)))
		}
	}
	byClass := shadowed(func(d *Document, _ *Route) { d.Classes[1].Shadow = true })
	if r, _ := routeOf(compilePolicy(t, byClass), "r"); r.Class != policy.ShadowClass+1 || !byClass.Shadows() {
		t.Errorf("%+v", r)
	}
}

func TestFaultsOfShadows(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Document, *Route){
		"routes[0].shadow[0] is not":                               func(_ *Document, r *Route) { r.Shadow = []string{"auth"} },
		"routes[0].shadow[1] is given twice":                       func(_ *Document, r *Route) { r.Shadow = []string{"limit", "limit"} },
		"routes[0].shadow[0] is of a route that asks for no scope": func(_ *Document, r *Route) { r.Shadow, r.Scope = []string{"scope"}, "" },
		"routes[0].shadow is of a route that knows no callers":     func(_ *Document, r *Route) { r.Shadow, r.Scope, r.Auth = []string{"limit"}, "", []string{"none"} },
		"routes[0].shadow has too many":                            func(_ *Document, r *Route) { r.Shadow = []string{"scope", "limit", "quota", "scope"} },
	} {
		found := false
		var got []string
		for _, f := range shadowed(change).Faults() {
			text := f.Field + " " + f.Issue
			found, got = found || strings.HasPrefix(text, want), append(got, text)
		}
		if !found {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}
