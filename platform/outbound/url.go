package outbound

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/storage/postgres"
)

// MaxURL is the longest URL accepted, in bytes.
const MaxURL = 2048

// lookupTimeout bounds the name lookup of CheckURL.
const lookupTimeout = time.Second

// Refusal says what is wrong with a URL or a header, in the words of an error
// detail.
type Refusal struct {
	Issue    string
	Expected string // may be empty
}

// Error returns the issue.
func (r *Refusal) Error() string { return "the URL " + r.Issue }

// Detail turns an error of CheckURL or CheckHeader into the detail for the
// named field.
func Detail(field string, err error) decision.Detail {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return decision.Detail{Field: field, Issue: r.Issue, Expected: r.Expected}
	}
	return decision.Detail{Field: field, Issue: "is not valid"}
}

// CheckURL reports whether the client would call the URL, as far as that can be
// known before the call; the error is a *Refusal.
//
// It must be absolute and https, with a plain host name or address, without
// credentials or fragment, on a port that is not denied. Its name may not
// lead to an address outside the open Internet. http:// and denied ports are for
// hosts of which every address is in the allow-list. A name that does not
// resolve now is accepted over https: the addresses are checked again at every
// connection, which is the check that counts.
//
// It takes time and memory linear in raw, and one look-up of its name.
func (c *Client) CheckURL(ctx context.Context, raw string) error {
	t, err := parseTarget(raw)
	if err != nil {
		return err
	}
	addrs := c.lookup(ctx, t.host)
	allowed := len(addrs) > 0
	for _, addr := range addrs {
		if !c.reach.permits(addr) {
			return &Refusal{"leads to an address that is not public", "a host on the public Internet"}
		}
		allowed = allowed && within(addr, c.reach.allow)
	}
	switch {
	case allowed:
		return nil
	case t.url.Scheme == "http":
		return &Refusal{"does not use https", "an https:// URL"}
	case t.deniedPort():
		return &Refusal{"has a port that is not allowed", "443, or another port than those of mail, SSH, databases and the like"}
	case privateName(t.host):
		return &Refusal{"has a host name that is not public", "a host on the public Internet"}
	}
	return nil
}

// lookup returns the addresses of a host; none when it does not resolve in
// time.
func (c *Client) lookup(ctx context.Context, host string) []netip.Addr {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}
	}
	var addrs []netip.Addr
	var err error
	held := postgres.Apart(ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		addrs, err = c.resolver.LookupNetIP(ctx, "ip", host)
	})
	if held != nil || err != nil {
		return nil
	}
	return addrs
}

// target is a URL whose form is acceptable.
type target struct {
	url  *url.URL
	host string // without brackets and port
	port uint16
}

// parseTarget checks the form of a URL without looking anything up.
func parseTarget(raw string) (target, error) {
	if len(raw) > MaxURL {
		return target{}, &Refusal{"is longer than " + strconv.Itoa(MaxURL) + " bytes", ""}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Host == "" {
		return target{}, &Refusal{"is not an absolute URL", "an https:// URL"}
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return target{}, &Refusal{"does not use https", "an https:// URL"}
	}
	if u.User != nil {
		return target{}, &Refusal{"carries credentials", "a URL without user name and password"}
	}
	if strings.Contains(raw, "#") {
		return target{}, &Refusal{"has a fragment", "a URL without #"}
	}
	t := target{url: u, host: u.Hostname(), port: 443}
	if u.Scheme == "http" {
		t.port = 80
	}
	if strings.HasSuffix(u.Host, ":") || u.Port() != "" {
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || port == 0 {
			return target{}, &Refusal{"has a port that is not valid", ""}
		}
		t.port = uint16(port)
	}
	return t, checkHost(u.Host, t.host)
}

// checkHost accepts host names in plain ASCII, IPv4 addresses as four decimal
// numbers, and IPv6 addresses in brackets. Every other spelling is refused,
// because resolvers disagree about it: decimal, octal and hexadecimal IPv4,
// fewer than four parts, Unicode digits, percent-encoding, zones, a trailing
// dot.
func checkHost(authority, host string) error {
	odd := &Refusal{"has a host that is not a plain name or address", "a host name, an IPv4 address of four decimal numbers, or [IPv6]"}
	addr, err := netip.ParseAddr(host)
	if strings.HasPrefix(authority, "[") {
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return odd
		}
		return nil
	}
	if err == nil && addr.Is4() {
		return nil
	}
	labels := strings.Split(host, ".")
	if len(host) > 253 || endsInNumber(labels) {
		return odd
	}
	for _, label := range labels {
		if !plainLabel(label) {
			return odd
		}
	}
	return nil
}

// endsInNumber reports whether some resolver would read the host as an IPv4
// address.
func endsInNumber(labels []string) bool {
	last := strings.ToLower(labels[len(labels)-1])
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

func plainLabel(label string) bool {
	const plain = "abcdefghijklmnopqrstuvwxyz0123456789-_"
	return label != "" && len(label) <= 63 && strings.Trim(strings.ToLower(label), plain) == "" &&
		!strings.HasPrefix(label, "-") && !strings.HasSuffix(label, "-") && isASCII(label)
}

// isASCII guards against letters that ToLower maps into ASCII, such as the
// Kelvin sign.
func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > 127 }) < 0
}

// privateName reports whether a host name is one that never belongs to the open
// Internet: a single label, or one of the special suffixes of RFC 6761, 6762,
// 7686, 8375 and ICANN's .internal.
func privateName(host string) bool {
	if net.ParseIP(host) != nil {
		return false
	}
	host = strings.ToLower(host)
	if !strings.Contains(host, ".") {
		return true
	}
	for _, suffix := range []string{".localhost", ".local", ".internal", ".home.arpa", ".onion"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}
