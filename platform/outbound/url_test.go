package outbound

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

var (
	loopback  = netip.MustParseAddr("127.0.0.1")
	somewhere = netip.MustParseAddr("93.184.216.34")
)

func TestURLsThatMayBeCalled(t *testing.T) {
	t.Parallel()
	c := New(Config{Resolver: (&fakeDNS{answers: []netip.Addr{somewhere}}).resolver(t)})
	for _, raw := range []string{
		"https://example.com", "https://example.com/hook?a=b&c=%20", "HTTPS://EXAMPLE.com:8443/", "https://example.com:9443", "https://example.com:65535", "https://93.184.216.34/",
		"https://[2606:4700::1111]/", "https://xn--bcher-kva.example/", "https://under_score.example.com/", "https://1.2.3.4.example.com",
		"https://0x7f.example.com/", "https://[::ffff:8.8.8.8]/",
	} {
		if err := c.CheckURL(t.Context(), raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestURLsThatMayNotBeCalled(t *testing.T) {
	t.Parallel()
	c := New(Config{Resolver: (&fakeDNS{answers: []netip.Addr{somewhere}}).resolver(t)})
	table := map[string][]string{
		"is not an absolute URL": {"", "example.com/hook", "/hook", "https:", "https://", "https:example.com", "ht tp://x", "https://exa mple.com", "https://a\nb.com", "https://[::1", "https://example.com:x/",
			"https://%31%32%37.0.0.1/", "https://exam%70le.com/", "https://[127.0.0.1]/", "file:///etc/passwd", "https://example.com:00443x/"},
		"does not use https":       {"http://example.com", "ftp://example.com", "gopher://example.com/", "javascript://example.com", "//example.com"},
		"carries credentials":      {"https://user:pw@example.com/", "https://user@example.com/", "https://:@example.com/", "https://@example.com/"},
		"has a fragment":           {"https://example.com/#x", "https://example.com/#"},
		"has a port":               {"https://example.com:22/", "https://example.com:25/", "https://example.com:6379", "https://example.com:6667", "https://example.com:80", "https://example.com:0/", "https://example.com:/", "https://example.com:65536/"},
		"is longer than 2048":      {"https://example.com/" + strings.Repeat("x", MaxURL)},
		"address that is not publ": {"https://127.0.0.1/", "https://10.0.0.1:8443", "https://169.254.169.254/latest/meta-data", "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://[2001::1]/", "https://[fe80::1]/", "https://100.64.0.1/", "https://0.0.0.0/"},
		"not a plain name": {"https://2130706433/", "https://0x7f000001/", "https://017700000001/", "https://127.1/", "https://127.0.1/",
			"https://0177.0.0.1/", "https://0x7f.0.0.1/", "https://127.0.0.0x1/", "https://127.0.0.1./", "https://example.com./",
			"https://１２７.0.0.1/", "https://①②⑦.0.0.1/", "https://bücher.example/", "https://[fe80::1%25eth0]/", "https://a..b/", "https://.com/", "https://-a.com/", "https://a-.com/", "https://\u212Aelvin.com/",
			"https://256.256.256.256/", "https://1.2.3/", "https://" + strings.Repeat("a", 64) + ".com/", "https://a*b.com/"},
	}
	for issue, raws := range table {
		for _, raw := range raws {
			err := c.CheckURL(t.Context(), raw)
			var r *Refusal
			if !errors.As(err, &r) {
				t.Errorf("%q: %v, want a refusal", raw, err)
				continue
			}
			if !strings.Contains(r.Issue, issue) {
				t.Errorf("%q %s; want: %s", raw, r.Issue, issue)
			}
		}
	}
}

func TestNamesThatLeadInside(t *testing.T) {
	t.Parallel()
	c := New(Config{Resolver: (&fakeDNS{answers: []netip.Addr{netip.MustParseAddr("10.0.0.5")}}).resolver(t)})
	if err := c.CheckURL(t.Context(), "https://rebind.example.com/"); err == nil {
		t.Error("a name with a private address is accepted")
	}
}

func TestNamesThatDoNotResolve(t *testing.T) {
	t.Parallel()
	c := New(Config{Resolver: (&fakeDNS{}).resolver(t), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err := c.CheckURL(t.Context(), "https://not-yet.example.com/"); err != nil {
		t.Errorf("a public name that does not resolve yet: %v", err)
	}
	for _, raw := range []string{
		"http://not-yet.example.com/", "https://not-yet.example.com:22/", "https://intranet/", "https://db.internal/",
		"https://printer.local/", "https://x.localhost/", "https://nas.home.arpa/", "https://abc.ONION/",
	} {
		if err := c.CheckURL(t.Context(), raw); err == nil {
			t.Errorf("%s is accepted", raw)
		}
	}
}

func TestTheAllowListOpensSchemesAndPorts(t *testing.T) {
	t.Parallel()
	c := New(Config{
		Resolver: (&fakeDNS{answers: []netip.Addr{loopback}}).resolver(t),
		Allow:    []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
	})
	for _, raw := range []string{"http://127.0.0.1:9000/x", "https://127.0.0.1/", "http://[fd00::5]/", "http://hooks:3000/", "https://app.internal:1/"} {
		if err := c.CheckURL(t.Context(), raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, raw := range []string{"http://10.0.0.1/", "http://93.184.216.34/", "https://93.184.216.34:25/", "http://2130706433/", "http://u@127.0.0.1/"} {
		if err := c.CheckURL(t.Context(), raw); err == nil {
			t.Errorf("%s is accepted", raw)
		}
	}
}

func TestDetail(t *testing.T) {
	t.Parallel()
	err := New(Config{}).CheckURL(t.Context(), "ftp://example.com")
	if d := Detail("webhook.url", err); d.Field != "webhook.url" || d.Issue != "does not use https" || d.Expected != "an https:// URL" {
		t.Errorf("%+v", d)
	}
	if d := Detail("url", errors.New("secret")); d.Issue != "is not valid" {
		t.Errorf("%+v", d)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Authorization", "X-Custom", "content-type", "X-Request-ID", "User-Agent"} {
		if err := CheckHeader(name, "value with spaces; q=1"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, h := range [][2]string{
		{"", "x"}, {"a b", "x"}, {"a:b", "x"}, {"ä", "x"}, {"x\r\ny", "x"}, {"X-A", "a\r\nb: c"}, {"X-A", "a\x00"}, {"host", "x"},
		{"Content-Length", "5"}, {"transfer-encoding", "chunked"}, {"Connection", "close"}, {"x-sluice-identity", "v1"}, {"TE", "x"},
	} {
		if err := CheckHeader(h[0], h[1]); err == nil {
			t.Errorf("%q: %q is accepted", h[0], h[1])
		}
	}
}

// FuzzCheckURL holds that no accepted URL names an address outside the open
// Internet, however it is spelled.
func FuzzCheckURL(f *testing.F) {
	for _, raw := range []string{"https://example.com", "https://127.0.0.1", "https://[::1]:443/", "https://0x7f.1/", "http://a", "https://①.0.0.1"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		target, err := parseTarget(raw)
		if err != nil {
			return
		}
		if strings.ContainsAny(target.host, "%@/\\ #?") || target.url.User != nil || len(raw) > MaxURL {
			t.Fatalf("%q is accepted with host %q", raw, target.host)
		}
		if target.port == 0 {
			t.Fatalf("%q is accepted without a port", raw)
		}
	})
}
