package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane"
)

// small is the least document that has one of everything.
func small() Document {
	return Document{
		Classes:  []Class{{Name: "default", PerMinute: 60}},
		Plans:    []Plan{{Name: "free", Limits: map[string]Limit{"default": {PerMinute: 10, Burst: 5}}}},
		Scopes:   []string{"streams:read"},
		Products: []Product{{Name: "media", Upstreams: []Upstream{{Address: "10.0.0.1:80"}}}},
		Routes: []Route{
			{Name: "streams.get", Methods: []string{"GET"}, Path: "/v1/streams/{id}", Product: "media", Auth: []string{"key"}, Scope: "streams:read"},
			{Name: "health", Path: "/health", Respond: &Respond{Status: 200}, Auth: []string{"none"}},
		},
	}
}

// fieldsAtFault returns the fields that err names.
func fieldsAtFault(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*controlplane.Error](err)
	if !ok {
		t.Fatalf("not an error for callers: %v", err)
	}
	var names []string
	for _, d := range e.Details {
		if d.Issue == "" {
			t.Errorf("%s: no issue", d.Field)
		}
		names = append(names, d.Field)
	}
	return names
}

func TestSmallDocumentIsValid(t *testing.T) {
	t.Parallel()
	if got := fieldsAtFault(t, small().Validate()); got != nil {
		t.Fatal(got)
	}
}

// issuers adds a good issuer for each change, and changes it.
func issuers(changes ...func(*Issuer)) func(*Document) {
	return func(d *Document) {
		for _, change := range changes {
			is := Issuer{Issuer: "https://id.example", Audience: "sluice", JWKSURI: "https://id.example/keys", Account: "acct_0000000000007"}
			change(&is)
			d.Issuers = append(d.Issuers, is)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	ten := uint32(11)
	cases := []struct {
		what   string
		change func(*Document)
		fields string
	}{
		{"access log of no kind", func(d *Document) { d.AccessLog = "some" }, "access_log"},
		{"anonymous limit too large", func(d *Document) { d.AnonymousPerMinute = 1 << 31 }, "anonymous_per_minute"},
		{"no class", func(d *Document) { d.Classes, d.Plans = nil, nil }, "classes"},
		{"class without a limit", func(d *Document) { d.Classes[0].PerMinute = 0 }, "classes[0].per_minute"},
		{"class twice", func(d *Document) { d.Classes = append(d.Classes, d.Classes[0]) }, "classes[1].name"},
		{"class with a bad name", func(d *Document) { d.Classes = append(d.Classes, Class{Name: "A b", PerMinute: 1}) }, "classes[1].name"},
		{"plan with dots", func(d *Document) { d.Plans[0].Name = "a.b" }, "plans[0].name"},
		{"plan limits a class that is not there", func(d *Document) { d.Plans[0].Limits["bulk"] = Limit{PerMinute: 1} }, "plans[0].limits.bulk"},
		{"plan limit of nothing", func(d *Document) { d.Plans[0].Limits["default"] = Limit{Burst: 1} }, "plans[0].limits.default.per_minute"},
		{"scope without action", func(d *Document) { d.Scopes = append(d.Scopes, "streams") }, "scopes[1]"},
		{"scope wildcard", func(d *Document) { d.Scopes = append(d.Scopes, "streams:*") }, "scopes[1]"},
		{"scope twice", func(d *Document) { d.Scopes = append(d.Scopes, "streams:read") }, "scopes[1]"},
		{"more scopes than a key has bits", func(d *Document) {
			for i := range 64 {
				d.Scopes = append(d.Scopes, fmt.Sprintf("r%d:read", i))
			}
		}, "scopes"},
		{"product without upstream", func(d *Document) { d.Products[0].Upstreams = nil }, "products[0].upstreams"},
		{"upstream without port", func(d *Document) { d.Products[0].Upstreams[0].Address = "media" }, "products[0].upstreams[0].address"},
		{"upstream with port 0", func(d *Document) { d.Products[0].Upstreams[0].Address = "media:0" }, "products[0].upstreams[0].address"},
		{"upstream with scheme", func(d *Document) { d.Products[0].Upstreams[0].Address = "http://media:80" }, "products[0].upstreams[0].address"},
		{"upstream too heavy", func(d *Document) { d.Products[0].Upstreams[0].Weight = 1001 }, "products[0].upstreams[0].weight"},
		{"timeout without unit", func(d *Document) { d.Products[0].ConnectTimeout = "5" }, "products[0].connect_timeout"},
		{"timeout below zero", func(d *Document) { d.Products[0].IdleTimeout = "-5s" }, "products[0].idle_timeout"},
		{"too many retries", func(d *Document) { d.Products[0].Retries = &ten }, "products[0].retries"},
		{"health path without slash", func(d *Document) { d.Products[0].HealthPath = "health" }, "products[0].health_path"},
		{"route of no listener", func(d *Document) { d.Routes[0].Listener = "admin" }, "routes[0].listener"},
		{"route with a reserved name", func(d *Document) { d.Routes[0].Name = Unmapped }, "routes[0].name"},
		{"route twice by name", func(d *Document) { d.Routes[1].Name = d.Routes[0].Name }, "routes[1].name"},
		{"method in small letters", func(d *Document) { d.Routes[0].Methods = []string{"get"} }, "routes[0].methods[0]"},
		{"method twice", func(d *Document) { d.Routes[0].Methods = []string{"GET", "GET"} }, "routes[0].methods[1]"},
		{"tunnel", func(d *Document) { d.Routes[0].Methods = []string{"CONNECT"} }, "routes[0].methods[0]"},
		{"path without slash", func(d *Document) { d.Routes[0].Path = "v1" }, "routes[0].path"},
		{"product not known", func(d *Document) { d.Routes[0].Product = "voice" }, "routes[0].product"},
		{"no target", func(d *Document) { d.Routes[0].Product = "" }, "routes[0].product"},
		{"two targets", func(d *Document) { d.Routes[0].Respond = &Respond{Status: 200} }, "routes[0].respond"},
		{"answer of no status", func(d *Document) { d.Routes[1].Respond.Status = 0 }, "routes[1].respond.status"},
		{"answer too long", func(d *Document) { d.Routes[1].Respond.Body = strings.Repeat("a", 4097) }, "routes[1].respond.body"},
		{"header injection", func(d *Document) { d.Routes[1].Respond.ContentType = "a\r\nb: c" }, "routes[1].respond.content_type"},
		{"nobody gets in", func(d *Document) { d.Routes[0].Auth = nil }, "routes[0].auth"},
		{"way in not known", func(d *Document) { d.Routes[0].Auth = []string{"basic"} }, "routes[0].auth[0]"},
		{"session that the product never sees", func(d *Document) { d.Routes[0].Auth = []string{"session"} }, "routes[0].forward_credentials"},
		{"scope of a route open to all", func(d *Document) { d.Routes[0].Auth = []string{"none"} }, "routes[0].scope"},
		{"scope not known", func(d *Document) { d.Routes[0].Scope = "streams:write" }, "routes[0].scope"},
		{"class not known", func(d *Document) { d.Routes[0].Class = "bulk" }, "routes[0].class"},
		{"timeout of a route", func(d *Document) { d.Routes[0].Timeout = "soon" }, "routes[0].timeout"},
		{"body limit too large", func(d *Document) { d.Routes[0].BodyLimit = 1 << 40 }, "routes[0].body_limit"},
		{"route hidden by another", func(d *Document) {
			d.Routes = append(d.Routes, Route{Name: "again", Methods: []string{"POST", "GET"}, Path: "/v1/streams/{name}", Product: "media", Auth: []string{"key"}})
		}, "routes[2].path"},
		{"plan with budgets below nothing", func(d *Document) { d.Plans[0].Tokens = &TokenBudget{Daily: -1, Monthly: -1} }, "plans[0].tokens.daily plans[0].tokens.monthly"},
		{"plan with a month shorter than a day", func(d *Document) { d.Plans[0].Tokens = &TokenBudget{Daily: 10, Monthly: 9} }, "plans[0].tokens.monthly"},
		{"plan with a product not known", func(d *Document) { d.Plans[0].Products = []string{"media", "voice", "media"} }, "plans[0].products[1] plans[0].products[2]"},
		{"more proxies than there are", func(d *Document) { d.TrustedProxies = 17 }, "trusted_proxies"},
		{"issuer of nothing", func(d *Document) { d.Issuers = []Issuer{{}} },
			"issuers[0].account issuers[0].audience issuers[0].issuer issuers[0].jwks_uri"},
		{"issuer twice", issuers(func(is *Issuer) {}, func(is *Issuer) {}), "issuers[1].issuer"},
		{"issuer with a space", issuers(func(is *Issuer) { is.Issuer = "https://id. example" }), "issuers[0].issuer"},
		{"keys in a file", issuers(func(is *Issuer) { is.JWKSURI = "file:///etc/keys" }), "issuers[0].jwks_uri"},
		{"keys behind a password", issuers(func(is *Issuer) { is.JWKSURI = "https://a:b@id.example/keys" }), "issuers[0].jwks_uri"},
		{"issuer of no account", issuers(func(is *Issuer) { is.Account = "acct_7" }), "issuers[0].account"},
		{"issuer of two accounts", issuers(func(is *Issuer) { is.AccountClaim = "account" }), "issuers[0].account"},
		{"issuer that makes administrators", issuers(func(is *Issuer) { is.ScopeMap = map[string][]string{"root": {"*"}} }), "issuers[0].scope_map.root[0]"},
		{"issuer of scopes not known", issuers(func(is *Issuer) { is.ScopeMap = map[string][]string{"v": {"streams:*", "clips:write"}} }), "issuers[0].scope_map.v[1]"},
		{"several at once", func(d *Document) { d.Routes[0].Class, d.Routes[1].Path, d.Scopes = "bulk", "x", nil },
			"routes[0].class routes[0].scope routes[1].path"},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			d := small()
			c.change(&d)
			got := fieldsAtFault(t, d.Validate())
			slices.Sort(got)
			if strings.Join(got, " ") != c.fields {
				t.Errorf("faults in %q, want %q", got, c.fields)
			}
		})
	}
}

func TestRoutesThatDoNotHideEachOther(t *testing.T) {
	t.Parallel()
	d := small()
	with := func(name, listener, method, path string) {
		d.Routes = append(d.Routes, Route{Name: name, Listener: listener, Methods: strings.Fields(method), Path: path, Product: "media", Auth: []string{"key"}})
	}
	with("other.method", Gateway, "POST", "/v1/streams/{id}")
	with("other.listener", Runtime, "GET", "/v1/streams/{id}")
	with("any.method", Gateway, "", "/v1/streams/{id}")
	with("literal", Gateway, "GET", "/v1/streams/live")
	with("below", Gateway, "GET", "/v1/streams/*")
	if got := fieldsAtFault(t, d.Validate()); got != nil {
		t.Fatal(got)
	}
}
