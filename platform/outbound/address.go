package outbound

import "net/netip"

// special lists the address blocks that no outbound call may reach: the whole
// of IANA's special-purpose registries for IPv4 and IPv6 (also the globally
// reachable anycast services in them, none of which serves webhooks),
// multicast, and what is reserved or deprecated. 168.63.129.16 is public space,
// but on one large cloud the address of the host's metadata service.
var special = prefixes(
	// IPv4
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
	"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	// IPv6 inside 2000::/3; everything outside it is refused as a whole
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

// globalUnicast6 is all IPv6 space that is handed out for use on the Internet.
// Outside it lie loopback, the mapped and compatible forms of IPv4, NAT64
// (64:ff9b::/96, 64:ff9b:1::/48), discard-only, segment routing, unique-local,
// link-local and multicast.
var globalUnicast6 = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// Public reports whether the address belongs to the open Internet. IPv4-mapped
// IPv6 counts as the IPv4 address in it.
func Public(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() || addr.Is6() && !globalUnicast6.Contains(addr) {
		return false
	}
	return !within(addr, special)
}

// within reports whether one of the blocks holds the address.
func within(addr netip.Addr, blocks []netip.Prefix) bool {
	addr = addr.Unmap().WithZone("")
	for _, block := range blocks {
		if block.Contains(addr) {
			return true
		}
	}
	return false
}

// reach says which addresses a call may go to.
type reach struct {
	allow     []netip.Prefix
	allowOnly bool // only the allow-list: for http:// and for unusual ports
}

// permits reports whether the address may be called.
func (r reach) permits(addr netip.Addr) bool {
	return within(addr, r.allow) || !r.allowOnly && Public(addr)
}
