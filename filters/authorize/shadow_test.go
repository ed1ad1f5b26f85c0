package authorize

import (
	"testing"

	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/policy"
)

// shadowPolicy has one class of two requests a minute, and the routes "enforced", "scope",
// "limit", "quota" and "all" for what is in the shadow of each.
func shadowPolicy(t *testing.T) *policy.Policy {
	t.Helper()
	grants := keytable.Scopes{}.With(bitRead)
	made := &policy.Policy{
		Anonymous: 50, Classes: []string{"default"}, Scopes: []policy.Scope{{Bit: bitRead, Name: "streams:read"}},
		Plans: []policy.Plan{{Number: 1, Name: "small", Limits: []policy.Limit{{PerMinute: 2}}, Products: []string{"media"}}},
	}
	made.AddShadows()
	for name, r := range map[string]policy.Route{
		"enforced": {}, "scope": {Shadow: policy.ShadowScope}, "quota": {Shadow: policy.ShadowQuota}, "limit": {Class: policy.ShadowClass},
		"all":     {Shadow: policy.ShadowScope | policy.ShadowQuota, Class: policy.ShadowClass},
		"another": {Shadow: policy.ShadowScope | policy.ShadowQuota, Class: policy.ShadowClass, Product: "voice"},
	} {
		r.Name, r.Auth, r.Scope, r.Grants = name, policy.AuthKey, "streams:read", grants
		made.Routes = append(made.Routes, r)
	}
	p := policy.Parse(made.Encode())
	if p == nil {
		t.Fatal("the policy is not consistent")
	}
	return p
}

// What is in the shadow refuses nobody and says whom it would have refused; what is not
// refuses as ever, whatever stands before it.
func TestWhoPassesInTheShadow(t *testing.T) {
	t.Parallel()
	p := shadowPolicy(t)
	flag := func(f uint8) func(*keytable.Record) { return func(r *keytable.Record) { r.Flags = f } }
	ended := func(r *keytable.Record) { r.Expires = now }
	unknown := "Bearer " + apikey.FormatKey(99, [apikey.SecretBytes]byte{99})
	for name, c := range map[string]struct {
		route         string
		scope         bool
		set           func(*keytable.Record)
		before        int    // requests that the account has just made there
		raw           string // Authorization, in place of the key's
		would, refuse decision.Code
	}{
		"good":                              {route: "all", scope: true},
		"no scope, enforced":                {route: "enforced", refuse: decision.ScopeMissing},
		"no scope":                          {route: "scope", would: decision.ScopeMissing},
		"no scope, of another shadow":       {route: "quota", refuse: decision.ScopeMissing},
		"quota used, enforced":              {route: "enforced", scope: true, set: flag(keytable.FlagQuotaUsed), refuse: decision.QuotaUsed},
		"quota used":                        {route: "quota", scope: true, set: flag(keytable.FlagQuotaUsed), would: decision.QuotaUsed},
		"quota used, and no scope enforced": {route: "quota", set: flag(keytable.FlagQuotaUsed), refuse: decision.ScopeMissing},
		"quota used, and no scope":          {route: "all", set: flag(keytable.FlagQuotaUsed), would: decision.QuotaUsed},
		"over the limit, enforced":          {route: "enforced", scope: true, before: 2, refuse: decision.RateLimited},
		"over the limit":                    {route: "limit", scope: true, before: 2, would: decision.RateLimited},
		"no scope, and over the limit":      {route: "all", before: 2, would: decision.ScopeMissing},
		"no scope, and an enforced limit":   {route: "scope", before: 2, refuse: decision.RateLimited},
		"no scope enforced, over the limit": {route: "limit", before: 2, refuse: decision.ScopeMissing},
		"a product beyond the plan":         {route: "another", before: 2, refuse: decision.PlanTooLow},
		"unpaid":                            {route: "all", scope: true, set: flag(keytable.FlagUnpaid), refuse: decision.Unpaid},
		"an address not on the list":        {route: "all", scope: true, set: flag(keytable.FlagAllowlist), refuse: decision.EdgeNotReady},
		"an expired key":                    {route: "all", scope: true, set: ended, refuse: decision.TokenExpired},
		"an unknown key":                    {route: "all", raw: unknown, refuse: decision.InvalidKey},
		"no key":                            {route: "all", raw: "none", refuse: decision.AuthRequired},
	} {
		e := newEdge()
		var bits []int
		if c.scope {
			bits = []int{bitRead}
		}
		e.header = "Bearer " + e.key(1, c.set, bits...)
		for range c.before {
			Check(p, c.route, e, now)
		}
		switch c.raw {
		case "":
		case "none":
			e.header = ""
		default:
			e.header = c.raw
		}
		v := Check(p, c.route, e, now)
		passes := v.OK() || v.Shadowed()
		if passes != (c.refuse == "") || v.Shadowed() != (c.would != "") {
			t.Errorf("%s: passes %v, in the shadow %v, with %q", name, passes, v.Shadowed(), v.Code)
		}
		if want := c.would + c.refuse; v.Code != want {
			t.Errorf("%s: %q, want %q", name, v.Code, want)
		}
	}
}

// What is counted in the shadow counts against no enforced limit, nor the other way
// round, and the window is exact: of five requests at a limit of two, three would be refused.
func TestAShadowHasItsOwnWindow(t *testing.T) {
	t.Parallel()
	p, e := shadowPolicy(t), newEdge()
	e.header = "Bearer " + e.key(1, nil, bitRead)
	would := 0
	for range 5 {
		v := Check(p, "limit", e, now)
		if v.Shadowed() {
			would++
		} else if !v.OK() {
			t.Fatal(v.Code)
		}
		if v.Rate.Policy != "" {
			t.Errorf("the limit is shown as %q", v.Rate.Policy)
		}
	}
	if would != 3 {
		t.Errorf("%d of 5 would have been refused at a limit of 2, want 3", would)
	}
	for i := range 3 {
		if v := Check(p, "enforced", e, now); v.OK() != (i < 2) || v.Shadowed() || v.Rate.Policy != "default" {
			t.Errorf("enforced request %d: %q of limit %q", i, v.Code, v.Rate.Policy)
		}
	}
	if n := e.windows[ratelimit.AccountID(101, 0)].Total(); n != 2 {
		t.Errorf("%d count against the enforced limit, want 2", n)
	}
}

// A key's own limit is not the route's: it is enforced and counts what passes.
func TestAKeysOwnLimitIsEnforced(t *testing.T) {
	t.Parallel()
	p, e := shadowPolicy(t), newEdge()
	e.header = "Bearer " + e.key(1, func(r *keytable.Record) { r.Limit = 4 }, bitRead)
	var got []decision.Code
	for range 5 {
		v := Check(p, "limit", e, now)
		if !v.OK() && !v.Shadowed() && v.Rate.Policy != keyPolicy {
			t.Errorf("refused by the limit %q", v.Rate.Policy)
		}
		got = append(got, v.Code)
	}
	if got[1] != "" || got[2] != decision.RateLimited || got[4] != decision.RateLimited {
		t.Errorf("%q", got)
	}
	if v := Check(p, "limit", e, now); v.Shadowed() || v.Code != decision.RateLimited {
		t.Errorf("the sixth request at a key's limit of four: %q, in the shadow %v", v.Code, v.Shadowed())
	}
	if n := e.windows[ratelimit.KeyID(1)].Total(); n != 4 {
		t.Errorf("%d count for the key, want 4", n)
	}
}
