package resources

import (
	"net/netip"
	"testing"
)

func TestUpstreamsThatMayBe(t *testing.T) {
	t.Parallel()
	own := []string{"127.0.0.1:8080", "gw.example:443"}
	for _, c := range []struct {
		addr    string
		private bool // whether all private networks are allowed
		ok      bool
	}{
		{"10.0.0.1:80", true, true}, {"media:80", true, true}, {"${api}", true, true}, {"${none}", true, false},
		{"127.0.0.1:8080", true, false}, {"localhost:8080", true, false}, {"[::1]:8080", true, false}, {"0.0.0.0:8080", true, false},
		{"127.0.0.1:8081", true, true}, {"GW.example:443", true, false}, {"${loop}", true, false},
		{"8.8.8.8:80", false, true}, {"10.9.0.1:80", false, true}, {"10.0.0.1:80", false, false}, {"[fe80::1]:80", false, false},
		{"[::ffff:10.0.0.1]:80", false, false}, {"169.254.169.254:80", false, false}, {"media:80", false, false}, {"localhost:80", false, false},
		{"db.internal:80", false, false}, {"api.example.com:80", false, true}, {"${api}", false, true},
	} {
		o := Options{Addresses: map[string][]string{"api": {"10.0.0.1:80", "10.0.0.2:80"}, "loop": {"10.0.0.1:80", "localhost:8080"}, "none": {}}, Own: own}
		if !c.private {
			o.Upstreams = &Upstreams{Networks: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}}
		}
		if issue, expected := o.upstreamFault(c.addr); (issue == "") != c.ok || (issue == "") != (expected == "") {
			t.Errorf("%s, private %v: %q", c.addr, c.private, issue)
		}
	}
}
