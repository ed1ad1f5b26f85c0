// Package policy encodes and parses what an edge must know about routes, plans and
// scopes. The
// control plane compiles it from the config document, encodes it, and pushes it
// as the configuration of the edge filter; the filter parses it once per push
// and then only looks things up.
package policy

import (
	"slices"
	"strings"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/filters/x402"
)

// Auth is the set of ways in which a route lets callers in.
type Auth uint8

// The ways in. A route with none of them lets nobody in. AuthNone together with
// another makes the credential optional: none is fine, a bad one is refused.
const (
	AuthNone Auth = 1 << iota // anybody, without a credential
	AuthKey                   // an API key, checked at the edge
	// AuthSession is a session token, which the product checks too. So the edge
	// lets one pass that it cannot judge, and accounts that owe money still
	// reach what such a route serves: their own keys, sessions and invoices.
	AuthSession
	AuthToken       // a token of any issuer, checked at the edge
	AuthCertificate // a client certificate that Envoy has verified
)

// Policy is everything that decisions need besides the caller's own record.
type Policy struct {
	Version   uint64   // of the config document
	DocsBase  string   // public address of the gateway, for documentation links
	Anonymous uint32   // requests a minute of one client address without a valid credential
	Classes   []string // rate classes; a class is its index, and see ShadowClass
	Plans     []Plan
	Scopes    []Scope
	Issuers   []Issuer
	Routes    []Route
	Payment   x402.Terms // of routes that have a price
	// KeyHeaders are headers, in small letters, that may hold a key in place of
	// Authorization.
	KeyHeaders []string
	// Strict are the classes whose limits no cut-off edge may exceed, as indexes into
	// Classes, in order. Their Limits say so too.
	Strict []byte

	shown   []string // see Shown
	byRoute map[string]int
	byPlan  map[uint16]int
}

// Plan is what an account has bought.
type Plan struct {
	Number   uint16 // as in the records of keys
	Name     string
	Limits   []Limit  // by class; all plans name every class
	Products []string // that it includes; none: all
	Features []string // that it has
}

// Has reports whether the plan has a feature; every plan has "".
func (pl *Plan) Has(feature string) bool {
	return feature == "" || slices.Contains(pl.Features, feature)
}

// Includes reports whether the plan includes a product; "" is a route that the
// edge answers by itself.
func (pl *Plan) Includes(product string) bool {
	return len(pl.Products) == 0 || product == "" || slices.Contains(pl.Products, product)
}

// Limit bounds the requests of one account in one class.
type Limit struct {
	PerMinute uint32
	Burst     uint32 // requests above PerMinute that a short burst may use; 0: none
	Strict    bool   // the class is one of Policy.Strict
	// Connections is how many connections and streams may be open at once on routes that
	// are watched, and ConnectionsPerKey how many of them by one key. 0: any number.
	Connections, ConnectionsPerKey uint32
}

// Scope is the name of a scope bit, for the identity header.
type Scope struct {
	Bit  uint8
	Name string
}

// Issuer is one whose tokens are accepted. Its keys are not here: they come by
// the key feed, since they change at other times than the policy.
type Issuer struct {
	Name     string // the claim iss, exactly
	Audience string // must be in the claim aud
	// Own says that it is this platform: its tokens say at+jwt, and their ids
	// are those of sessions and grants.
	Own          bool
	ScopeClaim   string  // where a token's scopes stand
	Account      uint64  // the account of all its callers; 0: AccountClaim names it
	AccountClaim string  // of Claim; empty: Account counts
	Grants       []Grant // what values of ScopeClaim grant; none: values are names of scopes
}

// Grant is what one value of an issuer's scope claim grants.
type Grant struct {
	Value  string
	Scopes keytable.Scopes
}

// Claim makes an AccountClaim: the name of the claim, and the ids of the accounts
// that it may name; none: any. An edge of before they could be named looks for a
// claim called by all of it, finds none, and refuses the token.
func Claim(name string, accounts []string) string {
	return strings.Join(append([]string{name}, accounts...), " ")
}

// AccountIn returns the claim that names an account, and whether an issuer may name
// the account with this id there.
func (is *Issuer) AccountIn() (claim string, may func(id string) bool) {
	claim, list, restricted := strings.Cut(is.AccountClaim, " ")
	return claim, func(id string) bool {
		return !restricted || slices.Contains(strings.Split(list, " "), id)
	}
}

// Issuer returns the issuer with the given name; ok is false when its tokens
// are not accepted.
func (p *Policy) Issuer(name string) (is *Issuer, ok bool) {
	for i := range p.Issuers {
		if p.Issuers[i].Name == name {
			return &p.Issuers[i], true
		}
	}
	return nil, false
}

// Granted returns the scopes that words, the values of a token's scope claim,
// grant. Those that mean nothing here grant nothing. Only our own tokens can
// have the admin's scope.
func (p *Policy) Granted(is *Issuer, words []string) (s keytable.Scopes) {
	for _, w := range words {
		for _, g := range is.Grants {
			if g.Value == w {
				s[0], s[1] = s[0]|g.Scopes[0], s[1]|g.Scopes[1]
			}
		}
		if len(is.Grants) > 0 || w == scopes.Admin && !is.Own {
			continue
		}
		for _, sc := range p.Scopes {
			if sc.Name == w {
				s = s.With(int(sc.Bit))
			}
		}
	}
	return s
}

// Route is the policy of one route, found by the name that Envoy gives it.
type Route struct {
	Name string
	// Revision tells apart what a route asks in one version of the document and
	// in another. Envoy's name has it, so that a request is judged by the policy
	// of the very route that it matched, while edges have both. Behind a space it has
	// the route's method, if that is but one, and behind another grpcMark.
	Revision string
	Product  string
	// Of is the product that Product is a version of: the one that a plan must include.
	// Empty: Product is no version of another.
	Of      string
	Auth    Auth
	Class   uint8           // index into Classes
	Shadow  Shadow          // of what it asks, what is not enforced
	Scope   string          // the scope needed, for the error's details; empty: none
	Grants  keytable.Scopes // bits that grant it: the scope's, its resource's wildcard, the admin's
	Deny    decision.Code   // not empty: nobody gets through, with this code
	Price   uint64          // of one request without a credential, in the token's smallest units; 0: not for sale
	Feature string          // that the plan must have; empty: none
	// BodyLimit is how many bytes a request's body may have; 0: any number.
	BodyLimit uint64
	Stream    Stream // what is done about requests that last; a route with any of it has no BodyLimit

	index   int
	method  string
	grpc    bool
	sold    string
	special bool
}

// Sold is the product that a plan must include, of a policy that was parsed.
func (r *Route) Sold() string { return r.sold }

// Special reports whether the route refuses everybody or its streams are watched, of a
// policy that was parsed: one question for all that few routes have.
func (r *Route) Special() bool { return r.special }

// Index is the route's place in the Routes of the policy that was parsed.
func (r *Route) Index() int { return r.index }

// Method is the method that the route is for, HEAD being GET; empty when it is for several.
func (r *Route) Method() string { return r.method }

// Key is the name that Envoy gives the route.
func (r *Route) Key() string {
	if r.Revision == "" {
		return r.Name
	}
	return r.Name + "@" + r.Revision
}

// Route returns the policy of the route with the given key; ok is false when the
// edge has none, and the request must then be refused.
func (p *Policy) Route(name string) (r *Route, ok bool) {
	i, ok := p.byRoute[name]
	if !ok {
		return nil, false
	}
	return &p.Routes[i], true
}

// Plan returns the plan with the given number; ok is false when there is none.
func (p *Policy) Plan(number uint16) (*Plan, bool) {
	i, ok := p.byPlan[number]
	if !ok {
		return nil, false
	}
	return &p.Plans[i], true
}

// ScopeNames returns the names of the scopes in s, in the order of their bits.
func (p *Policy) ScopeNames(s keytable.Scopes) []string {
	var names []string
	for _, sc := range p.Scopes {
		if s.Has(int(sc.Bit)) {
			names = append(names, sc.Name)
		}
	}
	return names
}

// index fills the look-up tables; it reports whether the policy is consistent.
func (p *Policy) index() bool {
	p.showClasses()
	p.byRoute = make(map[string]int, len(p.Routes))
	p.byPlan = make(map[uint16]int, len(p.Plans))
	for i := range p.Routes {
		r := &p.Routes[i]
		unpayable := r.Price > 0 && p.Payment.Network == ""
		key := r.Key()
		if _, twice := p.byRoute[key]; twice || r.Name == "" || int(r.Class) >= len(p.Classes) || unpayable {
			return false
		}
		p.byRoute[key], r.index, r.sold, r.special = i, i, r.Product, r.Deny != "" || r.Stream != Unwatched
		if r.Of != "" {
			r.sold = r.Of
		}
		r.readMarks()
	}
	for i := range p.Plans {
		pl := &p.Plans[i]
		if _, twice := p.byPlan[pl.Number]; twice || len(pl.Limits) != len(p.Classes) {
			return false
		}
		p.byPlan[pl.Number] = i
	}
	for i, is := range p.Issuers {
		first, _ := p.Issuer(is.Name)
		if first != &p.Issuers[i] || is.Name == "" || is.Audience == "" || (is.Account == 0) == (is.AccountClaim == "") {
			return false
		}
	}
	return true
}
