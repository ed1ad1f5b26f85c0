package identity

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestClientAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edge, forwarded []string
		remote, want    string
	}{
		"the edge says it":             {[]string{"192.0.2.9"}, nil, "127.0.0.1:1", "192.0.2.9"},
		"the last proxy is no client":  {[]string{"192.0.2.9"}, []string{"192.0.2.9, 10.0.0.1"}, "127.0.0.1:1", "192.0.2.9"},
		"IPv6":                         {[]string{"2001:db8::1"}, nil, "127.0.0.1:1", "2001:db8::1"},
		"IPv4 in IPv6":                 {[]string{"::ffff:192.0.2.9"}, nil, "127.0.0.1:1", "192.0.2.9"},
		"no edge":                      {nil, nil, "[2001:db8::1]:1", "2001:db8::1"},
		"no edge, and a forwarded one": {nil, []string{"6.6.6.6"}, "127.0.0.1:1", "127.0.0.1"},
		"two":                          {[]string{"6.6.6.6", "192.0.2.9"}, nil, "127.0.0.1:1", "127.0.0.1"},
		"a list":                       {[]string{"6.6.6.6, 192.0.2.9"}, nil, "127.0.0.1:1", "127.0.0.1"},
		"no address":                   {[]string{"me"}, nil, "127.0.0.1:1", "127.0.0.1"},
		"no port":                      {nil, nil, "no port here", "no port here"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["X-Sluice-Client-Address"], r.Header["X-Forwarded-For"], r.RemoteAddr = c.edge, c.forwarded, c.remote
		if got := ClientAddress(r); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAddressOfACallerWithoutAnEdge(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	for name, c := range map[string]struct {
		header    string
		forwarded []string
		remote    string
		trusted   []netip.Prefix
		want      string
	}{
		"the client says it":            {"6.6.6.6", nil, "192.0.2.9:1", nil, "192.0.2.9"},
		"said behind a proxy":           {"6.6.6.6", []string{"192.0.2.9"}, "10.0.0.1:1", proxies, "192.0.2.9"},
		"nobody is trusted":             {"", []string{"6.6.6.6"}, "192.0.2.9:1", nil, "192.0.2.9"},
		"not a trusted proxy":           {"", []string{"6.6.6.6"}, "192.0.2.9:1", proxies, "192.0.2.9"},
		"what the client itself adds":   {"", []string{"6.6.6.6, 192.0.2.9"}, "10.0.0.1:1", proxies, "192.0.2.9"},
		"two proxies":                   {"", []string{"6.6.6.6,192.0.2.9, 10.0.0.2"}, "10.0.0.1:1", proxies, "192.0.2.9"},
		"two proxies, two lines":        {"", []string{"6.6.6.6,192.0.2.9", "10.0.0.2"}, "10.0.0.1:1", proxies, "192.0.2.9"},
		"IPv6":                          {"", []string{"2001:db8:2::9"}, "[2001:db8:1::1]:1", proxies, "2001:db8:2::9"},
		"IPv4 in IPv6":                  {"", []string{"::ffff:192.0.2.9"}, "[::ffff:10.0.0.1]:1", proxies, "192.0.2.9"},
		"a proxy that says nothing":     {"", nil, "10.0.0.1:1", proxies, "10.0.0.1"},
		"a proxy that calls by itself":  {"", []string{"10.0.0.7"}, "10.0.0.1:1", proxies, "10.0.0.7"},
		"no address":                    {"", []string{"6.6.6.6, me"}, "10.0.0.1:1", proxies, "10.0.0.1"},
		"no address before one":         {"", []string{"me, 10.0.0.2"}, "10.0.0.1:1", proxies, "10.0.0.2"},
		"an empty one":                  {"", []string{"6.6.6.6,"}, "10.0.0.1:1", proxies, "10.0.0.1"},
		"nothing at all but separators": {"", []string{strings.Repeat(",", 5000)}, "10.0.0.1:1", proxies, "10.0.0.1"},
		"a peer without an address":     {"6.6.6.6", []string{"6.6.6.6"}, "@", proxies, "@"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["X-Forwarded-For"], r.RemoteAddr = c.forwarded, c.remote
		if c.header != "" {
			r.Header.Set(AddressHeader, c.header)
		}
		got := ""
		Direct(c.trusted)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = ClientAddress(r) })).ServeHTTP(httptest.NewRecorder(), r)
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func FuzzForwarded(f *testing.F) {
	f.Add("192.0.2.9, 10.0.0.1", "10.0.0.2:1")
	f.Add(",,::1%a,", "[::1]:1")
	f.Add(strings.Repeat("10.0.0.1, ", 10_000), "10.0.0.2:1")
	f.Add(strings.Repeat("::1%zone,", 10_000)+"::1", "10.0.0.2:1")
	f.Fuzz(func(t *testing.T, forwarded, remote string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["X-Forwarded-For"], r.RemoteAddr = []string{forwarded}, remote
		trusted := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
		growth.Linear(t, len(forwarded)+len(remote), 16, 1<<10, func() { caller(r, trusted) })
		a, ok := caller(r, trusted)
		if ok && (!a.IsValid() || a.Zone() != "" || a.Is4In6()) {
			t.Errorf("%q from %q: %v", forwarded, remote, a)
		}
	})
}
