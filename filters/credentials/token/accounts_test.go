package token

import (
	"testing"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

// An issuer that names accounts speaks for those that the operator lists.
func TestAccountsThatAnIssuerSpeaksFor(t *testing.T) {
	t.Parallel()
	id := func(n uint64) string { return keytable.FormatID(keytable.AccountPrefix, n) }
	judged := func(listed []string, names any) (uint64, decision.Code) {
		p := policy.Parse((&policy.Policy{
			Classes: []string{"default"},
			Issuers: []policy.Issuer{{Name: foreign, Audience: "sluice", ScopeClaim: "roles", AccountClaim: policy.Claim("tenant", listed)}},
		}).Encode())
		b, d := check(p, newEdge(), compact(object{"alg": "ES256", "kid": "es"}, guest.with("tenant", names), "ES256"), now)
		return b.Account, d.Code
	}
	for name, c := range map[string]struct {
		listed []string
		names  any
		want   uint64 // 0: refused
	}{
		"any":                     {nil, id(7), 7},
		"one of two":              {[]string{id(6), id(7)}, id(7), 7},
		"the only one":            {[]string{id(7)}, id(7), 7},
		"another":                 {[]string{id(6), id(7)}, id(8), 0},
		"two at once":             {[]string{id(6), id(7)}, id(6) + " " + id(7), 0},
		"a part of one":           {[]string{id(7)}, id(7)[:len(id(7))-1], 0},
		"nothing":                 {[]string{id(7)}, nil, 0},
		"an empty one":            {[]string{id(7)}, "", 0},
		"none that is an account": {nil, "acct_7", 0},
	} {
		got, code := judged(c.listed, c.names)
		if c.want != 0 && (got != c.want || code != "") || c.want == 0 && code != decision.InvalidToken {
			t.Errorf("%s: %d %q, want %d", name, got, code, c.want)
		}
	}
}
