package app

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
)

// upstreams says where products may be; nil: anywhere.
func (e Environment) upstreams() (*resources.Upstreams, error) {
	switch e.Get("SLUICE_UPSTREAM_ALLOW_CIDRS") {
	case "any":
		return nil, nil
	case "none":
		return &resources.Upstreams{}, nil
	}
	networks, err := e.prefixes("SLUICE_UPSTREAM_ALLOW_CIDRS")
	return &resources.Upstreams{Networks: networks}, err
}

// hostPort is where a URL leads to; "" when it is none.
func hostPort(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// addresses are those that the configuration names as ${name}: of all processes
// that serve it, else of the one that this machine has.
func (e Environment) addresses() (map[string][]string, error) {
	all, errs := map[string][]string{}, []error(nil)
	for _, name := range []string{"api", "media", "runtime"} {
		var err error
		all[name], err = e.upstream("SLUICE_" + strings.ToUpper(name))
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// upstream returns the addresses in prefix_UPSTREAM, or else the one in
// prefix_LISTEN, as this machine reaches it.
func (e Environment) upstream(prefix string) ([]string, error) {
	name := prefix + "_UPSTREAM"
	text := e.Get(name)
	if text == "" {
		name = prefix + "_LISTEN"
		text = localAddress(e.Get(name))
	}
	var all []string
	for addr := range strings.SplitSeq(text, ",") {
		addr = strings.TrimSpace(addr)
		if !config.ValidAddress(addr) {
			return nil, fmt.Errorf("%s: %q is not host:port", name, addr)
		}
		all = append(all, addr)
	}
	return all, nil
}

// localAddress is an address of this machine at which what listens on addr is reached.
func localAddress(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return addr
	}
	return net.JoinHostPort("127.0.0.1", port)
}
