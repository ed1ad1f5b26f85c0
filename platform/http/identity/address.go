package identity

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/identityheader"
)

// AddressHeader carries the client's address to products, without a port. The
// edge sets it whatever came under its name: behind trusted proxies it is what
// the outermost of them saw, else the peer of the connection.
const AddressHeader = identityheader.AddressHeader

// ClientAddress is the address that the edge found to be the client's. For a
// header that is no one address, it is the connection's. A listener that others
// than edges reach must be wrapped by Direct: the header is the client's own there.
func ClientAddress(r *http.Request) string {
	if said := r.Header.Values(AddressHeader); len(said) == 1 {
		if a, err := netip.ParseAddr(said[0]); err == nil {
			return a.Unmap().String()
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// Direct is middleware for a listener before which no edge stands. It replaces
// what came as AddressHeader by what an edge would have put there: the peer of the
// connection or, where that is one of the trusted proxies, the last address in
// X-Forwarded-For that is not theirs.
func Direct(trusted []netip.Prefix) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del(AddressHeader)
			if a, ok := caller(r, trusted); ok {
				r.Header.Set(AddressHeader, a.String())
			}
			next.ServeHTTP(w, r)
		})
	}
}

// caller walks from the peer outwards, over each proxy that is trusted to say who
// called it. What is no address ends the walk: the proxy that passed it on is then
// as far as anybody can tell. It reads the header once, from its end, and keeps
// nothing of it.
func caller(r *http.Request, trusted []netip.Prefix) (netip.Addr, bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	at := plain(peer.Addr())
	values := r.Header.Values("X-Forwarded-For")
	for _, rest := range slices.Backward(values) {
		for more := true; more; {
			if !within(at, trusted) {
				return at, true
			}
			i := strings.LastIndexByte(rest, ',')
			before, err := netip.ParseAddr(strings.TrimSpace(rest[i+1:]))
			if err != nil {
				return at, true
			}
			at, more = plain(before), i >= 0
			rest = rest[:max(i, 0)]
		}
	}
	return at, true
}

// plain is an address in its one form: an IPv4 address is never within IPv6, and
// an interface of the sender's means nothing here.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func within(a netip.Addr, list []netip.Prefix) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}
