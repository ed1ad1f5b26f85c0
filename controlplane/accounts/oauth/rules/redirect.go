package rules

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// MaxRedirect bounds a redirect address, in bytes.
const MaxRedirect = 2000

// RedirectFault says why an address cannot be registered; "" when it can. Allowed
// are https, http on this machine only (127.0.0.1, [::1], localhost), and private
// schemes that hold a dot, as native apps use (RFC 8252 section 7.1). A fragment,
// a user name and wildcards are not.
//
// It takes time and memory linear in s.
func RedirectFault(s string) string {
	u, err := url.Parse(s)
	switch {
	case s == "" || len(s) > MaxRedirect || err != nil || !Printable(s) || strings.ContainsAny(s, " \\\"<>`{}|^*"):
		return "is not an address"
	case strings.Contains(s, "#"):
		return "has a fragment"
	case u.User != nil:
		return "has a user name"
	}
	switch u.Scheme {
	case "https":
		if u.Hostname() == "" {
			return "has no host"
		}
	case "http":
		if h := u.Hostname(); h != "127.0.0.1" && h != "::1" && h != "localhost" {
			return "is http to another machine"
		}
	default:
		if !strings.Contains(u.Scheme, ".") {
			return "has a scheme that anybody could use"
		}
	}
	return ""
}

// RedirectMatches reports whether asked is one of the registered addresses:
// character for character, save for the port of an http address on 127.0.0.1 or
// [::1], which native apps choose when they run (RFC 8252 section 7.3).
//
// It takes time linear in asked for each of registered, and memory of at most 64
// bytes for each byte of asked.
func RedirectMatches(registered []string, asked string) bool {
	if slices.Contains(registered, asked) {
		return true
	}
	host, path, ok := loopback(asked)
	return ok && slices.ContainsFunc(registered, func(r string) bool {
		h, p, ok := loopback(r)
		return ok && h == host && p == path
	})
}

// loopback takes an http address on a loopback literal apart, leaving out its
// port.
func loopback(s string) (host, rest string, ok bool) {
	for _, host := range []string{"http://127.0.0.1", "http://[::1]"} {
		rest, ok := strings.CutPrefix(s, host)
		if !ok {
			continue
		}
		if digits, ok := strings.CutPrefix(rest, ":"); ok {
			end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
			if end < 0 {
				end = len(digits)
			}
			if _, err := strconv.ParseUint(digits[:end], 10, 16); err != nil {
				return "", "", false
			}
			rest = digits[end:]
		}
		if rest == "" || rest[0] == '/' || rest[0] == '?' {
			return host, rest, true
		}
	}
	return "", "", false
}

// WithQuery returns the redirect address with parameters added to those it has,
// which stay as they are. Empty values are left out.
func WithQuery(address string, params ...[2]string) string {
	var b strings.Builder
	b.WriteString(address)
	sep := byte('?')
	if strings.Contains(address, "?") {
		sep = '&'
	}
	for _, p := range params {
		if p[1] == "" {
			continue
		}
		b.WriteByte(sep)
		b.WriteString(p[0] + "=" + url.QueryEscape(p[1]))
		sep = '&'
	}
	return b.String()
}
