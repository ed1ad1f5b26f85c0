package policy

import (
	"encoding/binary"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/host/wire"
	"sluice.dev/sluice/filters/x402"
)

// magic opens an encoded policy; its last byte is the version of the form.
const magic = "SLP\x04"

// Limits of an encoded policy. They bound what an edge spends on a push.
const (
	MaxBytes  = 4 << 20
	MaxRoutes = 20000
	// MaxIssuers bounds those whose tokens are accepted, and MaxGrants what one
	// of them may map.
	MaxIssuers = 33
	MaxGrants  = 256
	// MaxKeyHeaders bounds the headers that a request may bring its key in.
	MaxKeyHeaders = 4
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
	b = binary.AppendUvarint(b, uint64(len(p.Issuers)))
	for _, is := range p.Issuers {
		b = encodeIssuer(b, is)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Routes)))
	for _, r := range p.Routes {
		b = encodeRoute(b, r)
	}
	watched := p.watches()
	if b = encodeTerms(b, p.Payment); len(p.KeyHeaders)+len(p.Strict) > 0 || watched { // edges of the release before read no further
		b = list(b, p.KeyHeaders)
	}
	if len(p.Strict) > 0 || watched {
		b = append(binary.AppendUvarint(b, uint64(len(p.Strict))), p.Strict...)
	}
	if watched {
		b = p.encodeStreams(b)
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
	return list(list(b, pl.Products), pl.Features)
}

func encodeIssuer(b []byte, is Issuer) []byte {
	var own byte
	if is.Own {
		own = 1
	}
	b = append(str(str(b, is.Name), is.Audience), own)
	b = binary.LittleEndian.AppendUint64(str(b, is.ScopeClaim), is.Account)
	b = binary.AppendUvarint(str(b, is.AccountClaim), uint64(len(is.Grants)))
	for _, g := range is.Grants {
		b = bits(str(b, g.Value), g.Scopes)
	}
	return b
}

func bits(b []byte, s keytable.Scopes) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, s[0]), s[1])
}

func encodeRoute(b []byte, r Route) []byte {
	product := r.Product
	if r.Of != "" { // an edge of before takes both for one name, which no product believes
		product += " " + r.Of
	}
	b = str(str(str(b, r.Name), r.Revision), product)
	b = str(append(b, byte(r.Auth)|byte(r.Shadow)<<shadowShift, r.Class), r.Scope)
	b = str(bits(b, r.Grants), string(r.Deny))
	b = str(binary.AppendUvarint(b, r.Price), r.Feature)
	return binary.AppendUvarint(b, r.BodyLimit)
}

func encodeTerms(b []byte, t x402.Terms) []byte {
	b = str(str(str(b, t.Network), t.Asset), t.PayTo)
	b = binary.AppendUvarint(str(str(b, t.Name), t.Version), uint64(t.Seconds))
	if t.V2 {
		return append(b, 1)
	}
	return append(b, 0)
}

func list(b []byte, names []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(names)))
	for _, name := range names {
		b = str(b, name)
	}
	return b
}

func str(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Parse reads what Encode wrote. It returns nil when b is anything else, or
// names a class or plan that it does not define: an edge then keeps what it has.
//
// It takes time linear in b, of which it looks at no more than MaxBytes, and
// allocates at most 32 bytes for each of them, and 4 KiB.
func Parse(b []byte) *Policy {
	if len(b) > MaxBytes || len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return nil
	}
	r := reader{wire.NewReader(b[len(magic):])}
	p := &Policy{Version: r.Number(all), DocsBase: r.str(), Anonymous: uint32(r.Number(1 << 31))}
	p.Classes = make([]string, r.Count(256))
	for i := range p.Classes {
		p.Classes[i] = r.str()
	}
	p.Plans = make([]Plan, r.CountOf(65536, planSize))
	for i := range p.Plans {
		p.Plans[i] = r.plan()
	}
	p.Scopes = make([]Scope, r.CountOf(128, scopeSize))
	for i := range p.Scopes {
		p.Scopes[i] = Scope{Bit: r.Byte(), Name: r.str()}
	}
	if n := r.CountOf(MaxIssuers, issuerSize); n > 0 {
		p.Issuers = make([]Issuer, n)
	}
	for i := range p.Issuers {
		p.Issuers[i] = r.issuer()
	}
	p.Routes = make([]Route, r.CountOf(MaxRoutes, routeSize))
	for i := range p.Routes {
		p.Routes[i] = r.route()
	}
	p.Payment = r.terms()
	if !r.Done() {
		if p.KeyHeaders = r.list(); len(p.KeyHeaders) > MaxKeyHeaders || r.Done() && len(p.KeyHeaders) == 0 {
			return nil
		}
	}
	if !r.Done() && (!r.strict(p) || r.Done() && len(p.Strict) == 0) {
		return nil
	}
	if !r.Done() && !r.streams(p) {
		return nil
	}
	if !r.Done() || !p.index() {
		return nil
	}
	return p
}
