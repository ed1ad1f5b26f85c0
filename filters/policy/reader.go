package policy

import (
	"encoding/binary"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/keytable"
	"sluice.dev/sluice/filters/x402"
)

// reader takes values off the front of b. Once one does not fit it is bad, and
// gives zeros only, so a caller may read on and look at bad once, at the end.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.bad, r.b = true, nil }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// max reads a number that is at most limit.
func (r *reader) max(limit uint64) uint64 {
	v := r.uvarint()
	if v > limit {
		r.fail()
		return 0
	}
	return v
}

// count reads how many values follow: at most limit, and no more than the bytes
// that are left.
func (r *reader) count(limit uint64) uint64 {
	return r.max(min(limit, uint64(len(r.b))))
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) str() string { return string(r.bytes(r.uvarint())) }

func (r *reader) byte() byte {
	if v := r.bytes(1); len(v) == 1 {
		return v[0]
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if v := r.bytes(8); len(v) == 8 {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

func (r *reader) plan() Plan {
	pl := Plan{Number: uint16(r.max(65535)), Name: r.str()}
	pl.Limits = make([]Limit, r.count(256))
	for i := range pl.Limits {
		pl.Limits[i] = Limit{PerMinute: uint32(r.max(1 << 31)), Burst: uint32(r.max(1 << 31))}
	}
	pl.Products, pl.Features = r.list(), r.list()
	return pl
}

func (r *reader) list() (names []string) {
	for range r.count(1000) {
		names = append(names, r.str())
	}
	return names
}

func (r *reader) issuer() Issuer {
	is := Issuer{Name: r.str(), Audience: r.str(), Own: r.byte() == 1, ScopeClaim: r.str(), Account: r.uint64(), AccountClaim: r.str()}
	for range r.count(MaxGrants) {
		is.Grants = append(is.Grants, Grant{Value: r.str(), Scopes: r.scopes()})
	}
	return is
}

func (r *reader) scopes() keytable.Scopes { return keytable.Scopes{r.uint64(), r.uint64()} }

func (r *reader) route() Route {
	return Route{
		Name: r.str(), Revision: r.str(), Product: r.str(), Auth: Auth(r.byte()), Class: r.byte(), Scope: r.str(),
		Grants: r.scopes(), Deny: decision.Code(r.str()), Price: r.uvarint(), Feature: r.str(), BodyLimit: r.uvarint(),
	}
}

func (r *reader) terms() x402.Terms {
	return x402.Terms{
		Network: r.str(), Asset: r.str(), PayTo: r.str(), Name: r.str(), Version: r.str(), Seconds: uint32(r.max(1 << 31)), V2: r.byte() == 1,
	}
}
