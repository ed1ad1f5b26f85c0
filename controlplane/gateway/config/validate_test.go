package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/apierror"
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
	e, ok := errors.AsType[*apierror.Error](err)
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
		{"header of a key that is none", func(d *Document) { d.KeyHeaders = []string{"X API Key"} }, "key_headers[0]"},
		{"header of a key that means something", func(d *Document) { d.KeyHeaders = []string{"X-API-Key", "Authorization"} }, "key_headers[1]"},
		{"header of a key that is ours", func(d *Document) { d.KeyHeaders = []string{"X-Sluice-Identity"} }, "key_headers[0]"},
		{"header of a key twice", func(d *Document) { d.KeyHeaders = []string{"apikey", "ApiKey"} }, "key_headers[1]"},
		{"too many headers of keys", func(d *Document) { d.KeyHeaders = []string{"a", "b", "c", "d", "e"} }, "key_headers"},
		{"no class", func(d *Document) { d.Classes, d.Plans = nil, nil }, "classes"},
		{"class without a limit", func(d *Document) { d.Classes[0].PerMinute = 0 }, "classes[0].per_minute"},
		{"class twice", func(d *Document) { d.Classes = append(d.Classes, d.Classes[0]) }, "classes[1].name"},
		{"class with a bad name", func(d *Document) { d.Classes = append(d.Classes, Class{Name: "A b", PerMinute: 1}) }, "classes[1].name"},
		{"class that is neither strict nor available", func(d *Document) { d.Classes[0].WhenCutOff = "never" }, "classes[0].when_cut_off"},
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
		{"body limit too large", func(d *Document) { d.Routes[0].BodyLimit = 1<<40 + 1 }, "routes[0].body_limit"},
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
		{"issuer of one account and of some", issuers(func(is *Issuer) { is.Accounts = []string{"acct_0000000000007"} }), "issuers[0].accounts"},
		{"issuer of no accounts, and of one twice", issuers(func(is *Issuer) {
			is.Account, is.AccountClaim, is.Accounts = "", "tenant", []string{"acct_0000000000007", "acct_7", "acct_0000000000007", "*"}
		}), "issuers[0].accounts[1] issuers[0].accounts[2] issuers[0].accounts[3]"},
		{"issuer that makes administrators", issuers(func(is *Issuer) { is.ScopeMap = map[string][]string{"root": {"*"}} }), "issuers[0].scope_map.root[0]"},
		{"issuer of scopes not known", issuers(func(is *Issuer) { is.ScopeMap = map[string][]string{"v": {"streams:*", "clips:write"}} }), "issuers[0].scope_map.v[1]"},
		{"retry of what a retry does not help", func(d *Document) { d.Products[0].RetryOn = []uint32{503, 404, 600} }, "products[0].retry_on[1] products[0].retry_on[2]"},
		{"two ways to say health", func(d *Document) {
			d.Products[0].HealthPath, d.Products[0].Health = "/up", &Health{Path: "up", Interval: "x", Unhealthy: 101}
		},
			"products[0].health.interval products[0].health.path products[0].health.unhealthy products[0].health_path"},
		{"outliers out of bounds", func(d *Document) {
			d.Products[0].Outliers = Outliers{Failures: 1001, ServerErrors: 1001, MaxPercent: 101, Ejection: "-1s"}
		},
			"products[0].outliers.ejection products[0].outliers.failures products[0].outliers.max_percent products[0].outliers.server_errors"},
		{"host of a product", func(d *Document) { d.Products[0].Host = "a b" }, "products[0].host"},
		{"TLS without a name", func(d *Document) { d.Products[0].TLS = &TLS{CA: "no PEM", CAFile: "ca.pem", CertFile: "/c.pem"} },
			"products[0].tls.ca products[0].tls.ca_file products[0].tls.ca_file products[0].tls.cert_file products[0].tls.server_name"},
		{"file that leads elsewhere", func(d *Document) { d.Products[0].TLS = &TLS{ServerName: "a", CAFile: "/etc/../ca.pem"} }, "products[0].tls.ca_file"},
		{"origins that are none", func(d *Document) {
			d.Routes[0].CORS = &CORS{Origins: []string{"*", "app.example", "https://app.example/"}, Credentials: true, Headers: []string{"a b"}, MaxAge: "48h"}
		}, "routes[0].cors.credentials routes[0].cors.headers[0] routes[0].cors.max_age routes[0].cors.origins[1] routes[0].cors.origins[2]"},
		{"hosts that are none", func(d *Document) {
			d.Routes[0].Hosts = []string{"A.example", "a.example:80", "*", "a.example", "a.example"}
		},
			"routes[0].hosts[0] routes[0].hosts[1] routes[0].hosts[2] routes[0].hosts[4]"},
		{"headers that cannot match", func(d *Document) {
			d.Routes[0].Headers = []HeaderMatch{{Name: "x_a"}, {Name: "a", Value: "b", Absent: true}, {Name: "a", Regex: "("}, {Name: ":path", Value: "\n"}}
		}, "routes[0].headers[0].name routes[0].headers[1].value routes[0].headers[2].regex routes[0].headers[3].name routes[0].headers[3].value"},
		{"rewrite to what the path lacks", func(d *Document) { d.Routes[0].Rewrite = &Rewrite{Path: "/x/{name}", Host: "a b"} }, "routes[0].rewrite.host routes[0].rewrite.path"},
		{"rewrite of a tail that is not there", func(d *Document) { d.Routes[0].Rewrite = &Rewrite{Path: "/x/*"} }, "routes[0].rewrite.path"},
		{"rewrite to no path", func(d *Document) { d.Routes[0].Rewrite = &Rewrite{Path: "x"} }, "routes[0].rewrite.path"},
		{"two rewrites", func(d *Document) { d.Routes[0].Rewrite = &Rewrite{Path: "/x", Prefix: "y"} }, "routes[0].rewrite.prefix routes[0].rewrite.prefix"},
		{"rewrite of an answer", func(d *Document) { d.Routes[1].Rewrite = &Rewrite{Prefix: "/x/"} }, "routes[1].rewrite"},
		{"feature of no plan", func(d *Document) { d.Routes[0].Feature = "sso" }, "routes[0].feature"},
		{"feature twice", func(d *Document) { d.Plans[0].Features = []string{"sso", "sso", "S"} }, "plans[0].features[1] plans[0].features[2]"},
		{"held body too large", func(d *Document) { d.Routes[0].ChatCaps, d.Routes[0].BodyLimit = true, 64<<20+1 }, "routes[0].body_limit"},
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

// Hosts and headers in another order or case are the same.
func TestRoutesThatHideEachOtherByTheirConditions(t *testing.T) {
	t.Parallel()
	d := small()
	for _, r := range []Route{
		{Name: "one", Hosts: []string{"b.example", "a.example"}, Headers: []HeaderMatch{{Name: "x-a"}, {Name: "X-B", Value: "1"}}},
		{Name: "two", Hosts: []string{"a.example"}, Headers: []HeaderMatch{{Name: "x-b", Value: "1"}, {Name: "x-a"}}},
	} {
		r.Path, r.Product, r.Auth = "/v1/clips", "media", []string{"key"}
		d.Routes = append(d.Routes, r)
	}
	if got := fieldsAtFault(t, d.Validate()); len(got) != 1 || got[0] != "routes[3].path" {
		t.Error(got)
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
	with("host", Gateway, "GET", "/v1/streams/{id}")
	d.Routes[len(d.Routes)-1].Hosts = []string{"a.example", "*.a.example"}
	with("other.host", Gateway, "GET", "/v1/streams/{id}")
	d.Routes[len(d.Routes)-1].Hosts = []string{"b.example"}
	with("header", Gateway, "GET", "/v1/streams/{id}")
	d.Routes[len(d.Routes)-1].Headers = []HeaderMatch{{Name: "x-version", Value: "2"}}
	with("other.header", Gateway, "GET", "/v1/streams/{id}")
	d.Routes[len(d.Routes)-1].Headers = []HeaderMatch{{Name: "x-version", Value: "3"}}
	if got := fieldsAtFault(t, d.Validate()); got != nil {
		t.Fatal(got)
	}
}
