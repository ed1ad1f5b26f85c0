package policy

import (
	"fmt"
	"reflect"
	"testing"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/limits/growth"
)

func sample() *Policy {
	return &Policy{
		Version: 42, DocsBase: "http://gw", Anonymous: 60,
		Classes: []string{"default", "events"},
		Plans:   []Plan{{Number: 40009, Name: "pro", Limits: []Limit{{PerMinute: 600, Burst: 100}, {PerMinute: 5000}}, Products: []string{"api", "media"}, Features: []string{"sso"}}, {Number: 1, Name: "local", Limits: []Limit{{PerMinute: 1e6}, {PerMinute: 5000}}}},
		Scopes:  []Scope{{0, "*"}, {1, "streams:*"}, {2, "streams:read"}},
		Issuers: []Issuer{
			{Name: "http://gw", Audience: "http://gw", Own: true, ScopeClaim: "scopes", AccountClaim: "account"},
			{Name: "https://id.example", Audience: "sluice", ScopeClaim: "roles", Account: 7,
				Grants: []Grant{{"viewer", keytable.Scopes{}.With(2)}, {"editor", keytable.Scopes{}.With(1)}}},
		},
		Payment: x402.Terms{Network: "base", Asset: "0x1", PayTo: "0x2", Name: "USD Coin", Version: "2", Seconds: 60, V2: true},
		Routes: []Route{
			{Name: "streams.list", Revision: "1f", Product: "media", Auth: AuthKey, Scope: "streams:read", Grants: keytable.Scopes{}.With(0).With(1).With(2)},
			{Name: "streams.list", Revision: "2f GET", Product: "media-v2", Of: "media", Auth: AuthKey},
			{Name: "clips.create", Product: "media", Auth: AuthKey, Price: 10000},
			{Name: "sessions", Product: "api", Auth: AuthSession | AuthNone, Class: 1},
			{Name: "unmapped", Deny: decision.RouteNotMapped},
		},
	}
}

func TestParseReadsWhatEncodeWrote(t *testing.T) {
	t.Parallel()
	want := sample()
	got := Parse(want.Encode())
	if got == nil || !want.index() || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v", got)
	}
}

func TestLookUps(t *testing.T) {
	t.Parallel()
	p := Parse(sample().Encode())
	if r, ok := p.Route("unmapped"); !ok || r.Deny != decision.RouteNotMapped {
		t.Error("unmapped")
	}
	if _, ok := p.Route("streams"); ok {
		t.Error("a route that is not there was found")
	}
	if r, ok := p.Route("streams.list@1f"); !ok || r.Name != "streams.list" {
		t.Error("a revision was not found")
	}
	if _, ok := p.Route("streams.list"); ok {
		t.Error("a route of no revision was found")
	}
	if pl, ok := p.Plan(40009); !ok || pl.Limits[1].PerMinute != 5000 {
		t.Error("plan 40009")
	}
	if _, ok := p.Plan(0); ok {
		t.Error("plan 0 was found")
	}
	if names := p.ScopeNames(keytable.Scopes{}.With(2).With(0).With(99)); fmt.Sprint(names) != "[* streams:read]" {
		t.Errorf("%v", names)
	}
}

func TestWhatTokensGrant(t *testing.T) {
	t.Parallel()
	p := Parse(sample().Encode())
	own, _ := p.Issuer("http://gw")
	mapped, _ := p.Issuer("https://id.example")
	unmapped := &Issuer{}
	for _, c := range []struct {
		is    *Issuer
		words []string
		want  string
	}{
		{own, []string{"streams:read", "streams:*", "unknown"}, "[streams:* streams:read]"},
		{own, []string{"*"}, "[*]"},
		{own, nil, "[]"},
		{mapped, []string{"viewer", "editor"}, "[streams:* streams:read]"},
		{mapped, []string{"streams:read", "*", "Viewer"}, "[]"},
		{unmapped, []string{"streams:read"}, "[streams:read]"},
		{unmapped, []string{"*"}, "[]"},
	} {
		if got := fmt.Sprint(p.ScopeNames(p.Granted(c.is, c.words))); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.is.Name, c.words, got, c.want)
		}
	}
	if _, ok := p.Issuer("https://id.example/"); ok {
		t.Error("an issuer of another name was found")
	}
}

func TestProductsOfPlans(t *testing.T) {
	t.Parallel()
	p := Parse(sample().Encode())
	pro, _ := p.Plan(40009)
	local, _ := p.Plan(1)
	for product, want := range map[string]bool{"media": true, "": true, "voice": false} {
		if pro.Includes(product) != want || !local.Includes(product) {
			t.Errorf("%q: pro %v, local %v", product, pro.Includes(product), local.Includes(product))
		}
	}
}

func TestFeaturesOfPlans(t *testing.T) {
	t.Parallel()
	p := Parse(sample().Encode())
	pro, _ := p.Plan(40009)
	local, _ := p.Plan(1)
	if !pro.Has("sso") || local.Has("sso") || !local.Has("") || pro.Has("other") {
		t.Error(pro.Features, local.Features)
	}
}

func TestKeyHeaders(t *testing.T) {
	t.Parallel()
	p := sample()
	p.KeyHeaders = []string{"apikey", "x-api-key"}
	b := p.Encode()
	if got := Parse(b); got == nil || fmt.Sprint(got.KeyHeaders) != "[apikey x-api-key]" {
		t.Fatalf("%+v", got)
	}
	if Parse(b[:len(b)-1]) != nil || Parse(append(b, 0)) != nil {
		t.Error("cut or padded: accepted")
	}
	p.KeyHeaders = make([]string, MaxKeyHeaders+1)
	if Parse(p.Encode()) != nil {
		t.Error("too many: accepted")
	}
}

func TestStrictClasses(t *testing.T) {
	t.Parallel()
	for _, headers := range [][]string{nil, {"x-api-key"}} {
		p := sample()
		p.KeyHeaders, p.Strict = headers, []byte{1}
		for i := range p.Plans {
			p.Plans[i].Limits[1].Strict = true
		}
		b := p.Encode()
		got := Parse(b)
		if got == nil || !p.index() || !reflect.DeepEqual(got, p) {
			t.Fatalf("%+v", got)
		}
		if Parse(b[:len(b)-1]) != nil || Parse(append(b, 0)) != nil {
			t.Error("cut or padded: accepted")
		}
		for name, classes := range map[string][]byte{"one that is not there": {2}, "one twice": {1, 1}, "not in order": {1, 0}} {
			if p.Strict = classes; Parse(p.Encode()) != nil {
				t.Errorf("%s: accepted", name)
			}
		}
	}
}

func TestInconsistentPolicyIsRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*Policy){
		"a route twice":          func(p *Policy) { p.Routes[2].Name, p.Routes[2].Revision = p.Routes[0].Name, p.Routes[0].Revision },
		"a route without a name": func(p *Policy) { p.Routes[1].Name = "" },
		"a class not defined":    func(p *Policy) { p.Routes[1].Class = 2 },
		"a plan twice":           func(p *Policy) { p.Plans[1].Number = 40009 },
		"an issuer twice":        func(p *Policy) { p.Issuers[1].Name = "http://gw" },
		"an issuer for anybody":  func(p *Policy) { p.Issuers[1].Audience = "" },
		"callers of no account":  func(p *Policy) { p.Issuers[1].Account = 0 },
		"callers of two":         func(p *Policy) { p.Issuers[1].AccountClaim = "account" },
		"a plan without a class": func(p *Policy) { p.Plans[1].Limits = p.Plans[1].Limits[:1] },
	}
	for name, change := range cases {
		p := sample()
		change(p)
		if Parse(p.Encode()) != nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCutOrPaddedPolicyIsRefused(t *testing.T) {
	t.Parallel()
	b := sample().Encode()
	for n := range b {
		if Parse(b[:n]) != nil {
			t.Fatalf("cut to %d of %d bytes: accepted", n, len(b))
		}
	}
	if Parse(append(b, 0)) != nil {
		t.Fatal("padded: accepted")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample().Encode())
	headers := sample()
	headers.KeyHeaders, headers.Strict = []string{"x-api-key"}, []byte{0, 1}
	f.Add(headers.Encode())
	f.Add(watching().Encode())
	for _, claim := range [][]byte{ // of many things, in front of nothing but zeros
		{0x80, 2},                   // classes
		{0, 0xff, 0x9f, 2},          // plans
		{0, 0, 0x80, 1},             // scopes
		{0, 0, 0, 33},               // issuers
		{0, 0, 0, 0, 0xa0, 0x9c, 1}, // routes
	} {
		f.Add(append(append([]byte(magic+"\x01\x00\x01"), claim...), make([]byte, 40_000)...))
	}
	many := &Policy{}
	for i := range 60_000 {
		many.Plans = append(many.Plans, Plan{Number: uint16(i)})
	}
	f.Add(many.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		growth.Linear(t, len(b), 32, 4<<10, func() { Parse(b) })
		p := Parse(b)
		if p != nil && !reflect.DeepEqual(Parse(p.Encode()), p) {
			t.Fatal("a parsed policy does not survive its encoding")
		}
	})
}

func BenchmarkParse2000Routes(b *testing.B) {
	p := sample()
	for i := range 2000 {
		p.Routes = append(p.Routes, Route{Name: fmt.Sprintf("route.%d", i), Product: "media", Auth: AuthKey, Scope: "streams:read"})
	}
	raw := p.Encode()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		Parse(raw)
	}
}
