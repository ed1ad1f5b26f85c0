package jwt

import (
	"strings"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

// Claims are what a token says.
type Claims struct {
	Issuer    string   // iss
	Audience  []string // aud, whether it is one string or an array of them
	ID        string   // jti
	Expires   int64    // exp in unix seconds; never absent
	NotBefore int64    // nbf; 0 when absent
	IssuedAt  int64    // iat; 0 when absent
	all       members
}

// parse reads a payload. A registered claim of another type is a fault, since
// what it was meant to forbid is not known.
func (c *Claims) parse(b []byte) (ok bool) {
	if c.all, ok = object(b); !ok {
		return false
	}
	if c.Issuer, ok = c.all.text("iss"); !ok {
		return false
	}
	if _, there := c.all.find("jti"); there {
		if c.ID, ok = c.all.text("jti"); !ok {
			return false
		}
	}
	if v, there := c.all.find("aud"); there {
		if c.Audience, ok = c.all.strings(v); !ok {
			return false
		}
	}
	return c.times()
}

// times reads exp, which must be there, nbf and iat.
func (c *Claims) times() bool {
	for name, to := range map[string]*int64{"exp": &c.Expires, "nbf": &c.NotBefore, "iat": &c.IssuedAt} {
		v, there := c.all.find(name)
		if !there {
			continue
		}
		n, ok := seconds(c.all.b[v.From:v.To])
		if !ok {
			return false
		}
		*to = n
	}
	_, there := c.all.find("exp")
	return there
}

// maxTime is the end of the year 9999.
const maxTime = 253402300799

// seconds reads a whole number of seconds. RFC 7519 allows fractions; nobody
// sends them, and readers that round them disagree about when a token ends.
func seconds(raw []byte) (n int64, ok bool) {
	if len(raw) == 0 || len(raw) > 12 {
		return 0, false
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, n <= maxTime
}

// strings reads one string, or an array of nothing but strings, maxList of them
// at most.
func (m members) strings(v jsonscan.Value) (list []string, ok bool) {
	if v.Kind(m.b) != jsonscan.Array {
		s, ok := m.string(v)
		return []string{s}, ok
	}
	for w := jsonscan.Members(m.b, v); w.Step(); {
		s, ok := m.string(w.Value)
		if !ok || len(list) == maxList {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}

// Has reports whether the token has the claim.
func (c Claims) Has(name string) bool {
	_, there := c.all.find(name)
	return there
}

// Text returns the claim if it is a string, else "".
func (c Claims) Text(name string) string {
	s, _ := c.all.text(name)
	return s
}

// Words returns the claim as a list: an array of strings as it is, a string
// split at spaces (RFC 8693 section 4.2), nothing for anything else and for a
// list of more than maxList words.
func (c Claims) Words(name string) []string {
	v, there := c.all.find(name)
	if !there {
		return nil
	}
	var list []string
	if s, ok := c.all.string(v); ok {
		list = strings.Fields(s)
	} else if list, ok = c.all.strings(v); !ok {
		return nil
	}
	if len(list) > maxList {
		return nil
	}
	return list
}

// For reports whether audience is one of those that the token is meant for.
func (c Claims) For(audience string) bool {
	for _, a := range c.Audience {
		if a == audience {
			return true
		}
	}
	return false
}
