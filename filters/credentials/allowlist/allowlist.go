// Package allowlist decides whether a client's address is one from which its
// account may call (contract 3.4: AUTH_003).
package allowlist

import (
	"net/netip"
	"strings"

	"sluice.dev/sluice/filters/decision"
)

// Max is how many blocks of addresses an account may list.
const Max = 64

// How many bytes a block has in its longest spelling, and an address with a port
// and the name of an interface.
const (
	maxText = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128")
	maxAddr = 2 * maxText
)

// Parse reads an address or a block of addresses, such as 192.0.2.7,
// 192.0.2.0/24 or 2001:db8::/32. Bits behind the block's length are cleared,
// and IPv4 that is mapped into IPv6 is IPv4. ok is false for anything else, an
// address with a zone included, and at once for what is longer than any block.
func Parse(s string) (p netip.Prefix, ok bool) {
	if len(s) > maxText {
		return p, false
	}
	var err error
	if strings.Contains(s, "/") {
		p, err = netip.ParsePrefix(s)
	} else if addr, e := netip.ParseAddr(s); e == nil && addr.Zone() == "" {
		p = netip.PrefixFrom(addr, addr.BitLen())
	} else {
		return p, false
	}
	return normal(p), err == nil
}

func normal(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// Encode gives the bytes of a list of valid blocks: for each of them the length
// of its address in bytes, its own length in bits, and its address.
func Encode(list []netip.Prefix) []byte {
	var b []byte
	for _, p := range list {
		p = normal(p)
		addr := p.Addr().AsSlice()
		b = append(append(b, byte(len(addr)), byte(p.Bits())), addr...)
	}
	return b
}

// Decide lets a client pass whose address is in one of the encoded blocks. addr
// is "host:port" or "[host]:port", as Envoy gives it. A list or an address that
// cannot be read lets nobody pass. It takes time linear in the list, and allocates
// nothing that grows with either.
func Decide(addr string, encoded []byte) decision.Decision {
	if len(addr) > maxAddr { // whoever reads one that is none repeats it in an error
		return decision.Deny(decision.AddrRefused)
	}
	if ap, err := netip.ParseAddrPort(addr); err == nil && contains(encoded, ap.Addr().Unmap().WithZone("")) {
		return decision.Pass
	}
	return refuse(addr)
}

// refuse tells a caller which address of it is not in the list: one behind a proxy or a
// translation often does not know.
func refuse(addr string) decision.Decision {
	host := strings.Trim(addr[:max(0, strings.LastIndexByte(addr, ':'))], "[]")
	if _, ok := Parse(host); !ok {
		return decision.Deny(decision.AddrRefused)
	}
	return decision.Decision{Code: decision.AddrRefused, Detail: decision.Detail{Field: "address", Issue: "is " + host, Expected: "one of the account's allowlist"}}
}

func contains(b []byte, addr netip.Addr) bool {
	found := false
	for len(b) > 0 {
		n := int(b[0])
		if n != 4 && n != 16 || len(b) < 2+n {
			return false
		}
		block, _ := netip.AddrFromSlice(b[2 : 2+n])
		p := netip.PrefixFrom(block, int(b[1]))
		if !p.IsValid() {
			return false
		}
		found = found || p.Contains(addr)
		b = b[2+n:]
	}
	return found
}
