package app

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// checkExposure refuses an address of edges and the control plane that others than this
// machine reach, unless both show certificates and the feed asks for a token, or
// SLUICE_XDS_INSECURE says otherwise. addrs are those to listen on, or to call.
func (e Environment) checkExposure(addrs []string) error {
	allowed := e.List("SLUICE_XDS_INSECURE")
	for _, a := range allowed {
		if a != "plain" && a != "open" {
			return fmt.Errorf("SLUICE_XDS_INSECURE: %q is neither plain nor open", a)
		}
	}
	at := slices.IndexFunc(addrs, func(addr string) bool { return !loopback(addr) })
	if at < 0 {
		return nil
	}
	var errs []error
	if e.Get("SLUICE_XDS_TLS_DIR") == "" && !slices.Contains(allowed, "plain") {
		errs = append(errs, fmt.Errorf("SLUICE_XDS_ADDR %s is not this machine alone, and no certificates are shown there: "+
			"set SLUICE_XDS_TLS_DIR (`sluice certs` makes them), or SLUICE_XDS_INSECURE=plain where the network itself is trusted", addrs[at]))
	}
	if len(e.List("SLUICE_FEED_TOKEN")) == 0 && !slices.Contains(allowed, "open") {
		errs = append(errs, fmt.Errorf("SLUICE_XDS_ADDR %s is not this machine alone, and the key feed there, with the secret that signs identities, asks for no token: "+
			"set SLUICE_FEED_TOKEN, or SLUICE_XDS_INSECURE=open where everybody who reaches it may read it", addrs[at]))
	}
	return errors.Join(errs...)
}

// loopback reports whether only this machine reaches an address. A name other than
// localhost is another machine's.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(strings.TrimSpace(addr))
	if err != nil {
		host = addr
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
