package ratelimit

import "net/netip"

// maxAddr is more bytes than an address has with its port and the name of an
// interface.
const maxAddr = 100

// AddressID is the ID of the client at addr, "host:port" or "[host]:port" as
// Envoy gives it. An IPv6 client has at least a /64 to itself, so that is what
// is limited; an IPv4 address mapped into IPv6 is the same client as without.
// Whatever does not parse shares one ID, at once when it is longer than any.
func AddressID(addr string) (id ID) {
	id[8] = 'a'
	if len(addr) > maxAddr {
		return id
	}
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return id
	}
	ip := ap.Addr().Unmap()
	if b := ip.As16(); ip.Is4() {
		copy(id[:4], b[12:])
		id[9] = 4
	} else {
		copy(id[:8], b[:8])
		id[9] = 6
	}
	return id
}

// GuessID is the ID of the same client for tokens that turned out to be no good:
// they have a window of their own.
func GuessID(addr string) ID {
	id := AddressID(addr)
	id[9] |= 0x80
	return id
}
