package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
)

// Issuer is another platform whose tokens open routes that take tokens.
type Issuer struct {
	Issuer   string `json:"issuer"`   // the claim iss, exactly
	Audience string `json:"audience"` // must be in the claim aud
	JWKSURI  string `json:"jwks_uri"` // where its keys are read
	// ScopeClaim names the claim that holds scopes: one string with spaces, or
	// an array. Empty: scope.
	ScopeClaim string `json:"scope_claim,omitempty"`
	// ScopeMap gives the scopes that a value of that claim grants; values that
	// it does not name grant nothing. Empty: values are names of scopes.
	ScopeMap map[string][]string `json:"scope_map,omitempty"`
	// Account is the account of all callers with its tokens. Or AccountClaim
	// names the claim that holds an account's id: such an issuer can act for
	// every account or, with Accounts, for those alone.
	Account      string   `json:"account,omitempty"`
	AccountClaim string   `json:"account_claim,omitempty"`
	Accounts     []string `json:"accounts,omitempty"`
}

// maxIssuerAccounts bounds Issuer.Accounts: every edge holds them.
const maxIssuerAccounts = 256

// The claims of the tokens that this platform issues.
const (
	ownScopes  = "scopes"
	ownAccount = "account"
)

// issuers compiles the issuers of d, and before them this platform itself under
// the given name.
func (d Document) issuers(own string, n Numbers) ([]policy.Issuer, error) {
	if own == "" {
		own = "sluice"
	}
	list := []policy.Issuer{{Name: own, Audience: own, Own: true, ScopeClaim: ownScopes, AccountClaim: ownAccount}}
	for i, is := range d.Issuers {
		if is.Issuer == own {
			return nil, apierror.Invalid([]decision.Detail{{Field: fmt.Sprintf("issuers[%d].issuer", i),
				Issue: "is this platform itself", Expected: "another issuer"}})
		}
		p := policy.Issuer{Name: is.Issuer, Audience: is.Audience, ScopeClaim: is.ScopeClaim}
		if p.ScopeClaim == "" {
			p.ScopeClaim = "scope"
		}
		if is.Account != "" {
			p.Account, _ = keytable.ParseID(keytable.AccountPrefix, is.Account)
		} else {
			p.AccountClaim = policy.Claim(is.AccountClaim, is.Accounts)
		}
		for _, value := range sorted(is.ScopeMap) {
			granted, err := n.bits(is.ScopeMap[value])
			if err != nil {
				return nil, err
			}
			p.Grants = append(p.Grants, policy.Grant{Value: value, Scopes: granted})
		}
		list = append(list, p)
	}
	return list, nil
}

func (v *validator) issuers(list []Issuer, known map[string]bool) {
	if !v.atMost("issuers", len(list), policy.MaxIssuers-1) {
		return
	}
	seen := map[string]bool{}
	for i, is := range list {
		f := fmt.Sprintf("issuers[%d]", i)
		v.word(f+".issuer", is.Issuer)
		if seen[is.Issuer] {
			v.add(f+".issuer", "is given twice", "")
		}
		seen[is.Issuer] = true
		v.word(f+".audience", is.Audience)
		u, err := url.Parse(is.JWKSURI)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(is.JWKSURI) > 2048 {
			v.add(f+".jwks_uri", "is not an address", "https://…")
		}
		if is.ScopeClaim != "" {
			v.word(f+".scope_claim", is.ScopeClaim)
		}
		v.issuerAccount(f, is)
		v.scopeMap(f+".scope_map", is.ScopeMap, known)
	}
}

func (v *validator) issuerAccount(f string, is Issuer) {
	switch {
	case (is.Account == "") == (is.AccountClaim == ""):
		v.add(f+".account", "must stand alone", "either account or account_claim")
	case is.Account == "":
		v.word(f+".account_claim", is.AccountClaim)
	case !isAccount(is.Account):
		v.add(f+".account", "is not the id of an account", "acct_…")
	}
	v.atMost(f+".accounts", len(is.Accounts), maxIssuerAccounts)
	if len(is.Accounts) > 0 && is.AccountClaim == "" {
		v.add(f+".accounts", "stands without account_claim", "account_claim, which names one of them")
	}
	for i, id := range is.Accounts[:min(len(is.Accounts), maxIssuerAccounts)] {
		if !isAccount(id) || slices.Contains(is.Accounts[:i], id) {
			v.add(fmt.Sprintf("%s.accounts[%d]", f, i), "is not the id of an account, or is given twice", "acct_…")
		}
	}
}

func isAccount(id string) bool {
	n, ok := keytable.ParseID(keytable.AccountPrefix, id)
	return ok && n != 0
}

// word checks a text that is compared byte by byte with what a token says.
func (v *validator) word(field, s string) {
	if s == "" || len(s) > 512 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		v.add(field, "is missing or not valid", "1 to 512 characters of ASCII without spaces")
	}
}

func (v *validator) scopeMap(f string, m map[string][]string, known map[string]bool) {
	if !v.atMost(f, len(m), policy.MaxGrants) {
		return
	}
	wildcards := map[string]bool{}
	for s := range known {
		for _, g := range scopes.Grantors(s) {
			wildcards[g] = true
		}
	}
	for _, value := range sorted(m) {
		for i, s := range v.within(f+"."+value, m[value], maxScopes) {
			if s == scopes.Admin || !wildcards[s] || slices.Contains(m[value][:i], s) {
				v.add(fmt.Sprintf("%s.%s[%d]", f, value, i), "is not a scope that another issuer can grant, or is given twice", "a name from scopes, or resource:*")
			}
		}
	}
}
