package identity

import (
	"net/http/httptest"
	"testing"
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
