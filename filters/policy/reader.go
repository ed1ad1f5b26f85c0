package policy

import (
	"math"
	"strings"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/host/wire"
	"sluice.dev/sluice/filters/x402"
)

// reader reads what a policy is made of.
type reader struct{ wire.Reader }

// The fewest bytes that each of these takes, so that no count makes a reader
// allocate for more of them than there can be.
const (
	planSize   = 5
	scopeSize  = 2
	issuerSize = 14
	grantSize  = 17
	routeSize  = 26
)

// all bounds nothing: bytes that are not there fail the reader anyway.
const all = math.MaxUint64

func (r *reader) str() string { return r.Text(all) }

func (r *reader) plan() Plan {
	pl := Plan{Number: uint16(r.Number(65535)), Name: r.str()}
	pl.Limits = make([]Limit, r.CountOf(256, 2))
	for i := range pl.Limits {
		pl.Limits[i] = Limit{PerMinute: uint32(r.Number(1 << 31)), Burst: uint32(r.Number(1 << 31))}
	}
	pl.Products, pl.Features = r.list(), r.list()
	return pl
}

func (r *reader) list() (names []string) {
	if n := r.Count(1000); n > 0 {
		names = make([]string, n)
	}
	for i := range names {
		names[i] = r.str()
	}
	return names
}

func (r *reader) issuer() Issuer {
	is := Issuer{Name: r.str(), Audience: r.str(), Own: r.Byte() == 1, ScopeClaim: r.str(), Account: r.Uint64(), AccountClaim: r.str()}
	if n := r.CountOf(MaxGrants, grantSize); n > 0 {
		is.Grants = make([]Grant, n)
	}
	for i := range is.Grants {
		is.Grants[i] = Grant{Value: r.str(), Scopes: r.scopes()}
	}
	return is
}

func (r *reader) scopes() keytable.Scopes { return keytable.Scopes{r.Uint64(), r.Uint64()} }

func (r *reader) route() Route {
	route := Route{
		Name: r.str(), Revision: r.str(), Product: r.str(), Auth: Auth(r.Byte()), Class: r.Byte(), Scope: r.str(),
		Grants: r.scopes(), Deny: decision.Code(r.str()), Price: r.Number(all), Feature: r.str(), BodyLimit: r.Number(all),
	}
	route.Shadow, route.Auth = Shadow(route.Auth>>shadowShift), route.Auth&(1<<shadowShift-1)
	route.Product, route.Of, _ = strings.Cut(route.Product, " ")
	return route
}

func (r *reader) terms() x402.Terms {
	return x402.Terms{
		Network: r.str(), Asset: r.str(), PayTo: r.str(), Name: r.str(), Version: r.str(), Seconds: uint32(r.Number(1 << 31)), V2: r.Byte() == 1,
	}
}

// strict reads the strict classes; false: there are none, or not of p.
func (r *reader) strict(p *Policy) bool {
	for range r.Count(uint64(len(p.Classes))) {
		class := r.Byte()
		if n := len(p.Strict); int(class) >= len(p.Classes) || n > 0 && p.Strict[n-1] >= class {
			return false
		}
		p.Strict = append(p.Strict, class)
	}
	for _, plan := range p.Plans {
		for _, class := range p.Strict {
			if int(class) < len(plan.Limits) {
				plan.Limits[class].Strict = true
			}
		}
	}
	return true
}
