package outbound

import (
	"net/netip"
	"testing"
)

// refusedBlocks is IANA's IPv4 and IPv6 special-purpose registries, multicast
// and the deprecated blocks, written out again from the registries so that an
// edit of the table in address.go is noticed.
var refusedBlocks = []string{
	"0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32", "192.0.0.170/32", "192.0.0.171/32", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32",
	"::1/128", "::/128", "::/96", "::ffff:0:0/104", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23",
	"2001::/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48",
	"2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16",
	"fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "4000::/3",
}

func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}

func TestSpecialPurposeBlocksAreNotPublic(t *testing.T) {
	t.Parallel()
	for _, text := range refusedBlocks {
		block := netip.MustParsePrefix(text)
		for _, addr := range []netip.Addr{block.Addr(), lastOf(block)} {
			if Public(addr) {
				t.Errorf("%v of %v counts as public", addr, block)
			}
			if addr.Is4() && Public(netip.AddrFrom16(addr.As16())) {
				t.Errorf("%v mapped into IPv6 counts as public", addr)
			}
		}
	}
}

func TestSingleAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "9.255.255.255": true, "11.0.0.0": true, "100.63.255.255": true, "100.128.0.0": true,
		"172.15.255.255": true, "172.32.0.0": true, "198.17.255.255": true, "198.20.0.0": true, "223.255.255.255": true,
		"2606:4700::1111": true, "2001:200::1": true, "2a00:1450::1": true, "::ffff:8.8.8.8": true, "2003::1": true,
		"169.254.169.254": false, "100.100.100.200": false, "168.63.129.16": false, "::ffff:169.254.169.254": false,
		"64:ff9b::8.8.8.8": false, "2002:7f00:1::": false, "fd00:ec2::254": false, "fe80::1%eth0": false,
	} {
		if got := Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("Public(%s) = %v", text, got)
		}
	}
	if Public(netip.Addr{}) {
		t.Error("the zero address counts as public")
	}
}

func TestReach(t *testing.T) {
	t.Parallel()
	allow := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	inner, outer, none := netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.2.0.1")
	open, only := reach{allow: allow}, reach{allow: allow, allowOnly: true}
	if !open.permits(inner) || !open.permits(outer) || open.permits(none) {
		t.Error("the open reach is public addresses and the allow-list")
	}
	if !only.permits(inner) || only.permits(outer) || only.permits(none) {
		t.Error("the inner reach is the allow-list alone")
	}
	if !only.permits(netip.MustParseAddr("::ffff:10.1.2.3")) {
		t.Error("a mapped address of the allow-list is refused")
	}
}
