package decision

import "testing"

func TestChallenges(t *testing.T) {
	t.Parallel()
	const gw = "https://gw.example"
	const realm, meta = `Bearer realm="sluice"`, `, resource_metadata="https://gw.example/.well-known/oauth-protected-resource`
	lacks := Decision{Code: ScopeMissing, Detail: Detail{Field: "scope", Issue: "is missing", Expected: "clips:write"}}
	for _, c := range []struct {
		name       string
		d          Decision
		base, path string
		want       string
	}{
		{"no credential", Deny(AuthRequired), gw, "/v1/streams", realm + meta + `"`},
		{"a bad key", Deny(InvalidKey), gw, "/v1/streams?a=b", realm + `, error="invalid_token"` + meta + `"`},
		{"an old token", Deny(TokenExpired), gw, "/", realm + `, error="invalid_token"` + meta + `"`},
		{"a scope too few", lacks, gw, "/v1/clips", realm + `, error="insufficient_scope", scope="clips:write"` + meta + `"`},
		{"scopes of another kind", Deny(ScopeMissing), gw, "/v1/clips", realm + `, error="insufficient_scope"` + meta + `"`},
		{"the tools of agents", Deny(AuthRequired), gw, "/mcp", realm + meta + `/mcp"`},
		{"the tools of agents, with a query", Deny(InvalidToken), gw, "/mcp?x", realm + `, error="invalid_token"` + meta + `/mcp"`},
		{"a path that looks like it", Deny(AuthRequired), gw, `/mcp"`, realm + meta + `"`},
		{"an unknown base", Deny(AuthRequired), "", "/mcp", realm},
		{"a stream key", Deny(Stream004), gw, "/", realm + meta + `"`},
		{"an address", Deny(AddrRefused), gw, "/", ""},
		{"a route that is not there", Deny(RouteNotMapped), gw, "/", ""},
		{"a rate", Deny(RateLimited), gw, "/", ""},
		{"a price", Deny(PaymentRequired), gw, "/", ""},
	} {
		if got := Challenge(c.d, c.base, c.path); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
}
