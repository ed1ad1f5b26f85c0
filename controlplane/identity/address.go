package identity

import (
	"net"
	"net/http"
	"net/netip"

	edge "sluice.dev/sluice/filters/identity"
)

// AddressHeader carries the client's address to products, without a port. The
// edge sets it whatever came under its name: behind trusted proxies it is what
// the outermost of them saw, else the peer of the connection.
const AddressHeader = edge.AddressHeader

// ClientAddress is the address that the edge found to be the client's. Without
// an edge, and for a header that is no one address, it is the connection's.
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
