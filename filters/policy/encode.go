package policy

import (
	"encoding/binary"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/keytable"
)

// magic opens an encoded policy; its last byte is the version of the form.
const magic = "SLP\x01"

// Limits of an encoded policy. They bound what an edge spends on a push.
const (
	MaxBytes  = 4 << 20
	MaxRoutes = 20000
)

// Encode gives the bytes of p that Parse reads.
func (p *Policy) Encode() []byte {
	b := append(make([]byte, 0, 64+64*len(p.Routes)), magic...)
	b = binary.AppendUvarint(b, p.Version)
	b = str(b, p.DocsBase)
	b = binary.AppendUvarint(b, uint64(p.Anonymous))
	b = binary.AppendUvarint(b, uint64(len(p.Classes)))
	for _, c := range p.Classes {
		b = str(b, c)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Plans)))
	for _, pl := range p.Plans {
		b = encodePlan(b, pl)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Scopes)))
	for _, s := range p.Scopes {
		b = str(append(b, s.Bit), s.Name)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Routes)))
	for _, r := range p.Routes {
		b = encodeRoute(b, r)
	}
	return b
}

func encodePlan(b []byte, pl Plan) []byte {
	b = str(binary.AppendUvarint(b, uint64(pl.Number)), pl.Name)
	b = binary.AppendUvarint(b, uint64(len(pl.Limits)))
	for _, l := range pl.Limits {
		b = binary.AppendUvarint(b, uint64(l.PerMinute))
		b = binary.AppendUvarint(b, uint64(l.Burst))
	}
	return b
}

func encodeRoute(b []byte, r Route) []byte {
	b = str(str(b, r.Name), r.Product)
	b = str(append(b, byte(r.Auth), r.Class), r.Scope)
	b = binary.LittleEndian.AppendUint64(b, r.Grants[0])
	b = binary.LittleEndian.AppendUint64(b, r.Grants[1])
	return str(b, string(r.Deny))
}

func str(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Parse reads what Encode wrote. It returns nil when b is anything else, or
// names a class or plan that it does not define: an edge then keeps what it has.
func Parse(b []byte) *Policy {
	if len(b) > MaxBytes || len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return nil
	}
	r := reader{b: b[len(magic):]}
	p := &Policy{Version: r.uvarint(), DocsBase: r.str(), Anonymous: uint32(r.max(1 << 31))}
	p.Classes = make([]string, r.count(256))
	for i := range p.Classes {
		p.Classes[i] = r.str()
	}
	p.Plans = make([]Plan, r.count(65536))
	for i := range p.Plans {
		p.Plans[i] = r.plan()
	}
	p.Scopes = make([]Scope, r.count(128))
	for i := range p.Scopes {
		p.Scopes[i] = Scope{Bit: r.byte(), Name: r.str()}
	}
	p.Routes = make([]Route, r.count(MaxRoutes))
	for i := range p.Routes {
		p.Routes[i] = r.route()
	}
	if r.bad || len(r.b) > 0 || !p.index() {
		return nil
	}
	return p
}

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
	return pl
}

func (r *reader) route() Route {
	return Route{
		Name: r.str(), Product: r.str(), Auth: Auth(r.byte()), Class: r.byte(), Scope: r.str(),
		Grants: keytable.Scopes{r.uint64(), r.uint64()}, Deny: decision.Code(r.str()),
	}
}
