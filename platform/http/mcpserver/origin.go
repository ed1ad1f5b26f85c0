package mcpserver

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// ours refuses pages of other sites, and pages that a name of theirs, pointed at
// this machine, makes look like ours: Origin and Host can be forged alike, so
// neither is compared with the other alone.
func (e *Endpoint) ours(r *http.Request) error {
	if !e.allowed(hostname(r.Host)) {
		return apierror.Errorf(decision.AddrRefused, "The Host header names another site.")
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	u, err := url.Parse(origin)
	same := err == nil && u.Host != "" && (strings.EqualFold(u.Host, r.Host) || strings.EqualFold(u.Host, e.public().Host))
	if !same {
		return apierror.Errorf(decision.AddrRefused, "The Origin header names another site.")
	}
	return nil
}

// allowed reports whether nobody else can point a name at this endpoint: it is
// an address, a name without a dot, which public DNS does not have, or one that
// was configured.
func (e *Endpoint) allowed(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host != "" && !strings.Contains(host, ".") || strings.EqualFold(host, e.public().Hostname()) ||
		slices.ContainsFunc(e.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// public is the public address; a nonsensical one names no host.
func (e *Endpoint) public() *url.URL {
	u, err := url.Parse(e.PublicURL)
	if err != nil {
		return &url.URL{}
	}
	return u
}

// hostname is a Host header without its port, and without the brackets of IPv6.
func hostname(host string) string { return (&url.URL{Host: host}).Hostname() }
