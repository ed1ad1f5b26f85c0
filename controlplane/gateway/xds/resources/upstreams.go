package resources

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/outbound"
)

// Upstreams lets products be on the open Internet and in some networks besides.
type Upstreams struct{ Networks []netip.Prefix }

// CheckUpstreams names every address of d that o cannot serve, or does not let
// be: the name of no address, one of the edges' own, one in a private network.
func (o Options) CheckUpstreams(d config.Document) error {
	var details []decision.Detail
	for i, p := range d.Products {
		for j, u := range p.Upstreams {
			if issue, expected := o.upstreamFault(u.Address); issue != "" {
				details = append(details, decision.Detail{Field: fmt.Sprintf("products[%d].upstreams[%d].address", i, j), Issue: issue, Expected: expected})
			}
		}
	}
	return apierror.Invalid(details)
}

func (o Options) upstreamFault(addr string) (issue, expected string) {
	resolved, err := o.resolve(addr)
	if err != nil {
		return err.Error(), "one of " + strings.Join(slices.Sorted(maps.Keys(o.Addresses)), ", ")
	}
	if slices.ContainsFunc(resolved, o.isOwn) {
		return "is an edge's own: its requests would come back for ever", "the address of a service behind the edge"
	}
	if !isName(addr) && o.Upstreams != nil && !o.Upstreams.permit(addr) {
		return "is in a private network", "a public address, or one in a network that the control plane allows"
	}
	return "", ""
}

// isOwn reports whether an edge is reached under addr.
func (o Options) isOwn(addr string) bool {
	return slices.ContainsFunc(o.Own, func(own string) bool { return canonical(own) == canonical(addr) })
}

func isName(addr string) bool { return strings.HasPrefix(addr, "${") }

// Resolve returns the addresses of an upstream of the document; none for a
// ${name} of no address.
func (o Options) Resolve(addr string) []string {
	all, _ := o.resolve(addr)
	return all
}

// resolve replaces a ${name} by the addresses that the control plane was given,
// of which there is at least one.
func (o Options) resolve(addr string) ([]string, error) {
	if !isName(addr) {
		return []string{addr}, nil
	}
	if all := o.Addresses[strings.TrimSuffix(strings.TrimPrefix(addr, "${"), "}")]; len(all) > 0 {
		return all, nil
	}
	return nil, errors.New("is not the name of an address")
}

// canonical makes the ways to write this machine one.
func canonical(hostport string) string {
	host, port, err := net.SplitHostPort(strings.ToLower(hostport))
	if err != nil {
		return hostport
	}
	if ip, err := netip.ParseAddr(host); err == nil && (ip.IsLoopback() || ip.IsUnspecified()) || host == "localhost" || host == "" {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// privateNames are endings of names that only mean something in a private
// network. What other names mean is up to the edge's resolver.
var privateNames = []string{".local", ".localhost", ".internal", ".lan", ".home.arpa"}

func (u Upstreams) permit(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return outbound.Public(ip) || slices.ContainsFunc(u.Networks, func(n netip.Prefix) bool { return n.Contains(ip.Unmap()) })
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return strings.Contains(host, ".") && !slices.ContainsFunc(privateNames, func(end string) bool { return strings.HasSuffix(host, end) })
}
