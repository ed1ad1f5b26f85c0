package schema

import "strings"

// isEmail is Mailbox of RFC 5321: a local part of words with dots between them, or
// in quotes, and a host name or an address in brackets.
func isEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64 || len(s)-at > 256 {
		return false
	}
	local, domain := s[:at], s[at+1:]
	if strings.HasPrefix(domain, "[") && strings.HasSuffix(domain, "]") {
		address := domain[1 : len(domain)-1]
		v6, is := strings.CutPrefix(address, "IPv6:")
		return isLocal(local) && (is && isIPv6(v6) || isIPv4(address))
	}
	return isLocal(local) && isHostname(domain)
}

func isLocal(s string) bool {
	if s[0] == '"' {
		return isQuoted(s)
	}
	dot := true // a word must follow
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c-'0' <= 9 || strings.IndexByte("!#$%&'*+-/=?^_`{|}~", c) >= 0
		if !letter && (c != '.' || dot) {
			return false
		}
		dot = c == '.'
	}
	return !dot
}

func isQuoted(s string) bool {
	if len(s) < 3 || s[len(s)-1] != '"' {
		return false
	}
	for i := 1; i < len(s)-1; i++ {
		switch c := s[i]; {
		case c == '\\':
			if i++; i == len(s)-1 || s[i] < ' ' || s[i] > '~' {
				return false
			}
		case c == '"', c < ' ', c > '~':
			return false
		}
	}
	return true
}

// isHostname is a host name of RFC 1123.
func isHostname(s string) bool {
	for {
		label, rest, more := strings.Cut(s, ".")
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; c != '-' && c-'0' > 9 && (c|0x20 < 'a' || c|0x20 > 'z') {
				return false
			}
		}
		if !more {
			return true
		}
		s = rest
	}
}

// isURI is URI of RFC 3986: a scheme and what it asks for.
func isURI(s string) bool {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || !isScheme(scheme) {
		return false
	}
	rest, fragment, _ := strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	if authority, found := strings.CutPrefix(rest, "//"); found {
		slash := strings.IndexByte(authority, '/')
		if slash < 0 {
			slash = len(authority)
		}
		if !isAuthority(authority[:slash]) {
			return false
		}
		rest = authority[slash:]
	}
	return hasOnly(rest, "/:@") && hasOnly(query, "/:@?") && hasOnly(fragment, "/:@?")
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c-'0' > 9 && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

func isAuthority(s string) bool {
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		if !hasOnly(s[:at], ":") {
			return false
		}
		s = s[at+1:]
	}
	var host, port string
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 || !isIPv6(s[1:end]) {
			return false
		}
		if port = s[end+1:]; port != "" && port[0] != ':' {
			return false
		}
		port = strings.TrimPrefix(port, ":")
	} else {
		host, port, _ = strings.Cut(s, ":")
	}
	return hasOnly(host, "") && (port == "" || number(port, min(len(port), 9)) >= 0 && len(port) <= 9)
}

// hasOnly reports whether s has nothing but unreserved characters, sub-delims,
// escapes and those of more.
func hasOnly(s, more string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c-'0' <= 9, strings.IndexByte("-._~!$&'()*+,;=", c) >= 0, strings.IndexByte(more, c) >= 0:
		case c == '%' && i+2 < len(s) && hexDigit(s[i+1]) && hexDigit(s[i+2]):
			i += 2
		default:
			return false
		}
	}
	return true
}
