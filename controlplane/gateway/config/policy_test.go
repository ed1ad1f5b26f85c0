package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/platform/apierror"
)

func compilePolicy(t *testing.T, d Document) *policy.Policy {
	t.Helper()
	p, err := d.Policy(9, "http://gw", ProvisionalNumbers(d))
	if err != nil {
		t.Fatal(err)
	}
	return policy.Parse(p.Encode())
}

// routeOf finds a route by its own name, whatever its revision.
func routeOf(p *policy.Policy, name string) (*policy.Route, bool) {
	for i := range p.Routes {
		if p.Routes[i].Name == name {
			return p.Route(p.Routes[i].Key())
		}
	}
	return nil, false
}

func TestPolicyOfTheDefaults(t *testing.T) {
	t.Parallel()
	d := defaults(t)
	n, p := ProvisionalNumbers(d), compilePolicy(t, d)
	if p.Version != 9 || p.DocsBase != "http://gw" || p.Anonymous != 6000 {
		t.Errorf("%d %q %d", p.Version, p.DocsBase, p.Anonymous)
	}
	create, _ := routeOf(p, "streams.create")
	for scope, want := range map[string]bool{"streams:write": true, "streams:*": true, "*": true, "streams:read": false, "clips:write": false, "clips:*": false} {
		if create.Grants.Has(n.Scopes[scope]) != want {
			t.Errorf("%s grants streams.create: %v", scope, !want)
		}
	}
	for name, want := range map[string]policy.Auth{"streams.create": policy.AuthKey | policy.AuthToken, "keys": policy.AuthSession, "health": policy.AuthNone} {
		if r, ok := routeOf(p, name); !ok || r.Auth != want {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for name, want := range map[string]decision.Code{Unmapped: decision.RouteNotMapped, Absent: decision.NotFound, Repeated: decision.RepeatedHeader} {
		if r, ok := routeOf(p, name); !ok || r.Deny != want || r.Auth != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestLimitsOfPlans(t *testing.T) {
	t.Parallel()
	d := defaults(t)
	n, p := ProvisionalNumbers(d), compilePolicy(t, d)
	for plan, want := range map[string]string{"local": "[{1000000 0 false 0 0} {5000 0 false 0 0} {60 0 false 0 0}]", "pro": "[{600 300 false 0 0} {5000 0 false 0 0} {60 0 false 0 0}]", "free": "[{60 0 false 0 0} {5000 0 false 0 0} {60 0 false 0 0}]"} {
		pl, ok := p.Plan(n.Plans[plan])
		if got := fmt.Sprint(pl.Limits); !ok || got != want {
			t.Errorf("%s: %s, want %s", plan, got, want)
		}
	}
	d.Classes[1].WhenCutOff = CutOffStrict
	strict := compilePolicy(t, d)
	if pl, _ := strict.Plan(n.Plans["pro"]); fmt.Sprint([]int{int(strict.Strict[0])}, pl.Limits) != "[1] [{600 300 false 0 0} {5000 0 true 0 0} {60 0 false 0 0}]" {
		t.Error(strict.Strict, pl.Limits)
	}
	list, _ := routeOf(p, "schedules.list")
	if p.Classes[list.Class] != "events" {
		t.Errorf("schedules.list is of class %s", p.Classes[list.Class])
	}
}

func TestEveryRouteThatChangesSomethingAsksForACredential(t *testing.T) {
	t.Parallel()
	open := map[string]bool{"oauth": true, "sessions.create": true, "runtime.mcp": true, "invitations.accept": true, "playback": true,
		"ingest.whip": true, "ingest.whip.session": true, "x402.verify": true} // they ask by themselves
	for _, r := range defaults(t).Routes {
		for _, m := range r.Methods {
			if m != "GET" && m != "OPTIONS" && r.Auth[0] == "none" && !open[r.Name] {
				t.Errorf("%s lets anybody %s", r.Name, m)
			}
		}
		// A product behind the gateway must never see a key. Where sessions are
		// taken too, the control plane, which holds the keys' hashes, checks both.
		if r.ForwardCredentials && r.Product != "runtime" && r.Auth[0] == "key" && (r.Product != "api" || len(r.Auth) < 2) {
			t.Errorf("%s shows keys to %s", r.Name, r.Product)
		}
	}
}

func TestNumbersThatAreMissing(t *testing.T) {
	t.Parallel()
	d := small()
	for what, change := range map[string]func(Numbers){
		"scope": func(n Numbers) { delete(n.Scopes, "streams:*") },
		"plan":  func(n Numbers) { delete(n.Plans, "free") },
	} {
		n := ProvisionalNumbers(d)
		change(n)
		if _, err := d.Policy(1, "", n); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestPolicyLargerThanAnEdgeTakes(t *testing.T) {
	t.Parallel()
	d := small()
	d.Products[0].Name = strings.Repeat("p", 100)
	for i := range 19000 {
		d.Routes = append(d.Routes, Route{Name: fmt.Sprintf("%099d", i), Path: fmt.Sprintf("/r/%d", i), Product: d.Products[0].Name, Auth: []string{"key"}})
	}
	_, err := d.Policy(1, "", ProvisionalNumbers(d))
	if apierror.Code(err) != decision.InvalidRequest {
		t.Fatalf("%v", err)
	}
}

func TestIssuersOfTokens(t *testing.T) {
	t.Parallel()
	d := small()
	issuers(func(is *Issuer) {
		is.ScopeClaim, is.ScopeMap = "roles", map[string][]string{"viewer": {"streams:read"}, "editor": {"streams:*"}}
	},
		func(is *Issuer) { is.Issuer, is.Account, is.AccountClaim = "https://other.example", "", "tenant" },
		func(is *Issuer) {
			is.Issuer, is.Account, is.AccountClaim, is.Accounts = "https://third.example", "", "tenant", []string{"acct_0000000000007", "acct_0000000000008"}
		})(&d)
	if got := fieldsAtFault(t, d.Validate()); got != nil {
		t.Fatal(got)
	}
	n, p := ProvisionalNumbers(d), compilePolicy(t, d)
	bit := func(s string) keytable.Scopes { return keytable.Scopes{}.With(n.Scopes[s]) }
	want := []policy.Issuer{
		{Name: "http://gw", Audience: "http://gw", Own: true, ScopeClaim: "scopes", AccountClaim: "account"},
		{Name: "https://id.example", Audience: "sluice", ScopeClaim: "roles", Account: 7,
			Grants: []policy.Grant{{Value: "editor", Scopes: bit("streams:*")}, {Value: "viewer", Scopes: bit("streams:read")}}},
		{Name: "https://other.example", Audience: "sluice", ScopeClaim: "scope", AccountClaim: "tenant"},
		{Name: "https://third.example", Audience: "sluice", ScopeClaim: "scope", AccountClaim: "tenant acct_0000000000007 acct_0000000000008"},
	}
	if !reflect.DeepEqual(p.Issuers, want) {
		t.Errorf("%+v", p.Issuers)
	}
}

func TestIssuerThatIsThisPlatform(t *testing.T) {
	t.Parallel()
	d := small()
	issuers(func(is *Issuer) { is.Issuer = "http://gw" })(&d)
	if _, err := d.Policy(1, "http://gw", ProvisionalNumbers(d)); apierror.Code(err) != decision.InvalidRequest {
		t.Fatal(err)
	}
}

func TestProductsOfPlans(t *testing.T) {
	t.Parallel()
	d := small()
	d.Plans[0].Products = []string{"media"}
	d.Routes[0].Auth = []string{"key", "token"}
	p := compilePolicy(t, d)
	pl, _ := p.Plan(ProvisionalNumbers(d).Plans["free"])
	r, _ := routeOf(p, "streams.get")
	if !pl.Includes("media") || pl.Includes("voice") || r.Auth != policy.AuthKey|policy.AuthToken {
		t.Errorf("%+v %+v", pl, r)
	}
}

// A route has another revision when it asks for something else, and only then.
func TestRevisionFollowsWhatARouteAsks(t *testing.T) {
	t.Parallel()
	revisionOf := func(change func(*Document)) string {
		d := small()
		d.Classes = append(d.Classes, Class{Name: "bulk", PerMinute: 1})
		d.Plans[0].Features = []string{"sso"}
		d.Scopes = append(d.Scopes, "streams:write")
		change(&d)
		r, _ := routeOf(compilePolicy(t, d), "streams.get")
		return r.Revision
	}
	first := revisionOf(func(*Document) {})
	for what, c := range map[string]struct {
		change func(*Document)
		other  bool
	}{
		"its path":         {func(d *Document) { d.Routes[0].Path = "/v2/streams/{id}" }, false},
		"another route":    {func(d *Document) { d.Routes[1].Auth = []string{"key"} }, false},
		"a rewrite":        {func(d *Document) { d.Routes[0].Rewrite = &Rewrite{Path: "/x/{id}"} }, false},
		"the class's rate": {func(d *Document) { d.Classes[0].PerMinute = 7 }, false},
		"the classes' order": {func(d *Document) {
			d.Classes[0], d.Classes[1], d.Routes[0].Class = d.Classes[1], d.Classes[0], "default"
		}, false},
		"its class":   {func(d *Document) { d.Routes[0].Class = "bulk" }, true},
		"its scope":   {func(d *Document) { d.Routes[0].Scope = "streams:write" }, true},
		"who gets in": {func(d *Document) { d.Routes[0].Auth = []string{"key", "token"} }, true},
		"its feature": {func(d *Document) { d.Routes[0].Feature = "sso" }, true},
		"its body":    {func(d *Document) { d.Routes[0].BodyLimit = 7 }, true},
		"its method":  {func(d *Document) { d.Routes[0].Methods = []string{"PUT"} }, true},
	} {
		if got := revisionOf(c.change); (got != first) != c.other || len(got) < 12 {
			t.Errorf("%s changed: %s, before %s", what, got, first)
		}
	}
}

func TestBodyLimits(t *testing.T) {
	t.Parallel()
	for want, r := range map[uint64]Route{
		10 << 20: {}, 0: {Streaming: true}, 5: {Streaming: true, BodyLimit: 5}, 64 << 10: {ChatCaps: true, Streaming: true}, 6: {BodyLimit: 6, ChatCaps: true},
	} {
		if got := r.bodyLimit(); got != want {
			t.Errorf("%+v: %d, want %d", r, got, want)
		}
	}
}

// More than edges take is refused before anything is stored, by name.
func TestPolicyThatEdgesWouldNotTake(t *testing.T) {
	t.Parallel()
	d := small()
	long := strings.Repeat("a", 90)
	d.Products[0].Name = long
	d.Routes = nil
	for i := range 19_000 {
		d.Routes = append(d.Routes, Route{Name: fmt.Sprintf("%s.%d", long, i), Path: fmt.Sprintf("/%d", i), Product: long, Auth: []string{"key"}})
	}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	_, err := d.Policy(1, "", ProvisionalNumbers(d))
	if got := fieldsAtFault(t, err); len(got) != 1 || got[0] != "routes" {
		t.Errorf("%v: %v", got, err)
	}
}

// Edges learn a route's method from its revision, where it has but one.
func TestPolicyTellsTheOnlyMethod(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		methods []string
		want    string
	}{
		{nil, ""}, {[]string{"GET"}, "GET"}, {[]string{"HEAD", "GET"}, "GET"}, {[]string{"HEAD"}, "HEAD"}, {[]string{"POST"}, "POST"}, {[]string{"GET", "POST"}, ""},
	} {
		d := small()
		d.Routes[0].Methods = c.methods
		if r, _ := routeOf(compilePolicy(t, d), "streams.get"); r.Method() != c.want {
			t.Errorf("%v: %q, want %q", c.methods, r.Method(), c.want)
		}
	}
}
