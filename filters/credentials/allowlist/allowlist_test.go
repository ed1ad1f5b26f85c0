package allowlist

import (
	"net/netip"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/limits/growth"
)

func list(t testing.TB, texts ...string) []byte {
	t.Helper()
	var blocks []netip.Prefix
	for _, text := range texts {
		p, ok := Parse(text)
		if !ok {
			t.Fatalf("%q is not read", text)
		}
		blocks = append(blocks, p)
	}
	return Encode(blocks)
}

func TestWhoMayCall(t *testing.T) {
	t.Parallel()
	mixed := list(t, "192.0.2.0/24", "198.51.100.7", "2001:db8:1::/48", "::ffff:203.0.113.0/120", "10.9.8.7/8")
	for addr, want := range map[string]bool{
		"192.0.2.1:80":               true,
		"192.0.2.255:1":              true,
		"192.0.3.0:80":               false,
		"198.51.100.7:443":           true,
		"198.51.100.8:443":           false,
		"[::ffff:192.0.2.9]:80":      true,  // IPv4 mapped into IPv6 is the same client
		"[::ffff:192.0.3.9]:80":      false, //
		"203.0.113.77:80":            true,  // a block written in mapped form
		"10.1.1.1:80":                true,  // bits behind the length count for nothing
		"[2001:db8:1:ffff::1]:80":    true,
		"[2001:db8:2::1]:80":         false,
		"[2001:db8:1::1%eth0]:80":    true,
		"[::192.0.2.1]:80":           false, // compatible form: not the IPv4 host
		"192.0.2.1":                  false, // no port: not what Envoy says
		"":                           false,
		"/var/run/client.sock":       false,
		"[64:ff9b::c000:201]:80":     false,
		"192.0.2.1.example:80":       false,
		"[::ffff:198.51.100.7]:1":    true,
		"[0:0:0:0:0:ffff:a01:101]:1": true,
	} {
		if Decide(addr, mixed).OK() != want {
			t.Errorf("%s: %v", addr, !want)
		}
	}
}

// Who is refused learns which address was looked at, if it is one.
func TestTheRefusedAddressIsTold(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{"192.0.2.1:1": "is 192.0.2.1", "[2001:db8::1]:80": "is 2001:db8::1", "/var/run/client.sock": "", "192.0.2.1": "", "": "", "<b>:1": "", "[fe80::1%eth0]:1": ""} {
		if d := Decide(addr, nil); d.Code != decision.AddrRefused || d.Detail.Issue != want || (d.Detail.Field == "") != (want == "") {
			t.Errorf("%s: %+v, want %q", addr, d, want)
		}
	}
}

func TestWholeFamilies(t *testing.T) {
	t.Parallel()
	v4, v6 := list(t, "0.0.0.0/0"), list(t, "::/0")
	for addr, want := range map[string][2]bool{"192.0.2.1:1": {true, false}, "[2001:db8::1]:1": {false, true}, "[::ffff:192.0.2.1]:1": {true, false}} {
		if got := [2]bool{Decide(addr, v4).OK(), Decide(addr, v6).OK()}; got != want {
			t.Errorf("%s: %v, want %v", addr, got, want)
		}
	}
}

func TestBrokenListLetsNobodyPass(t *testing.T) {
	t.Parallel()
	good := list(t, "0.0.0.0/0", "10.0.0.0/8")
	for what, b := range map[string][]byte{
		"empty": nil, "cut": good[:len(good)-1], "a family of 5": append([]byte{5, 0, 0, 0, 0, 0, 0}, good...),
		"too long a block": append([]byte{4, 33, 0, 0, 0, 0}, good...), "rubbish at the end": append(good[:len(good):len(good)], 4),
	} {
		if d := Decide("192.0.2.1:1", b); d.Code != decision.AddrRefused {
			t.Errorf("%s: %+v", what, d)
		}
	}
}

func TestWhatIsNoBlock(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "192.0.2", "192.0.2.0/33", "192.0.2.0/", "2001:db8::/129", "example.com", "fe80::1%eth0", "fe80::%eth0/64", "192.0.2.0/024", "192.0.2.1:80"} {
		if p, ok := Parse(s); ok {
			t.Errorf("%q was read as %v", s, p)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"192.0.2.0/24", "::ffff:192.0.2.0/120", "2001:db8::/32", "10.0.0.1", "::/0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		growth.Linear(t, len(s), 0, 4<<10, func() { Parse(s) })
		p, ok := Parse(s)
		if !ok {
			return
		}
		if again, ok := Parse(p.String()); !ok || again != p {
			t.Fatalf("%q is %v, and that is %v", s, p, again)
		}
		if addr := netip.AddrPortFrom(p.Addr(), 1).String(); !Decide(addr, Encode([]netip.Prefix{p})).OK() {
			t.Fatalf("%q does not hold its own first address %s", s, addr)
		}
	})
}

func FuzzDecide(f *testing.F) {
	f.Add("192.0.2.1:1", []byte{4, 24, 192, 0, 2, 0})
	f.Add("0:"+strings.Repeat("\xff", 4096), []byte{4, 24, 192, 0, 2, 0})
	f.Fuzz(func(t *testing.T, addr string, b []byte) {
		growth.Linear(t, len(addr)+len(b), 0, 4<<10, func() { Decide(addr, b) })
		if d := Decide(addr, b); d.OK() && len(b) < 6 {
			t.Fatal("a list without a block let somebody pass")
		}
	})
}
