package policy

import (
	"math"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/keytable"
	"sluice.dev/sluice/filters/wire"
	"sluice.dev/sluice/filters/x402"
)

// reader reads what a policy is made of.
type reader struct{ wire.Reader }

// all bounds nothing: bytes that are not there fail the reader anyway.
const all = math.MaxUint64

func (r *reader) str() string { return r.Text(all) }

func (r *reader) plan() Plan {
	pl := Plan{Number: uint16(r.Number(65535)), Name: r.str()}
	pl.Limits = make([]Limit, r.Count(256))
	for i := range pl.Limits {
		pl.Limits[i] = Limit{PerMinute: uint32(r.Number(1 << 31)), Burst: uint32(r.Number(1 << 31))}
	}
	pl.Products, pl.Features = r.list(), r.list()
	return pl
}

func (r *reader) list() (names []string) {
	for range r.Count(1000) {
		names = append(names, r.str())
	}
	return names
}

func (r *reader) issuer() Issuer {
	is := Issuer{Name: r.str(), Audience: r.str(), Own: r.Byte() == 1, ScopeClaim: r.str(), Account: r.Uint64(), AccountClaim: r.str()}
	for range r.Count(MaxGrants) {
		is.Grants = append(is.Grants, Grant{Value: r.str(), Scopes: r.scopes()})
	}
	return is
}

func (r *reader) scopes() keytable.Scopes { return keytable.Scopes{r.Uint64(), r.Uint64()} }

func (r *reader) route() Route {
	return Route{
		Name: r.str(), Revision: r.str(), Product: r.str(), Auth: Auth(r.Byte()), Class: r.Byte(), Scope: r.str(),
		Grants: r.scopes(), Deny: decision.Code(r.str()), Price: r.Number(all), Feature: r.str(), BodyLimit: r.Number(all),
	}
}

func (r *reader) terms() x402.Terms {
	return x402.Terms{
		Network: r.str(), Asset: r.str(), PayTo: r.str(), Name: r.str(), Version: r.str(), Seconds: uint32(r.Number(1 << 31)), V2: r.Byte() == 1,
	}
}
