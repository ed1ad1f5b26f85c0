// Package jwt reads compact JSON Web Tokens (RFC 7515, RFC 7519) as an edge
// must: it accepts one spelling of a token and nothing else, and never looks
// for a key in the token itself. It does not check signatures: it says what is
// signed, by which key, and how.
//
// It uses no reflection and reads everything a token holds in one pass.
package jwt

import (
	"encoding/base64"
	"strings"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

// Limits of a token. One beyond them does not parse.
const (
	MaxLen     = 8192 // bytes of the whole token
	maxName    = 512  // bytes of kid
	maxDepth   = 16   // of nested claims
	maxMembers = 128  // of the header, and of the claims
	maxList    = 256  // elements of a claim that is a list
)

// Token is a token whose signature has not been checked.
type Token struct {
	Alg       Alg
	KeyID     string // kid; never empty
	Type      string // typ; "" when the header has none
	Signed    string // what the signature covers
	Signature []byte // as in RFC 7518: ES256 is r and s, 32 bytes each
	Claims    Claims
}

// Parse reads a token. ok is false for whatever is not a token that an edge may
// trust after its signature is checked: another algorithm, no key id, header
// parameters that change how a token is read (crit, b64) or bring a key along
// (jwk, jku, x5c, x5u), a name given twice, base64url with padding or stray
// bits, white space around the header or the claims or much of it inside, times
// that are not whole seconds, no exp.
//
// It takes time linear in the text, of which it looks at no more than MaxLen
// bytes, and allocates at most 16 bytes for each of them, and 16 KiB.
func Parse(text string) (t Token, ok bool) {
	if len(text) > MaxLen || strings.ContainsAny(text, "\r\n") { // which encoding/base64 would skip
		return t, false
	}
	head, rest, ok := strings.Cut(text, ".")
	body, sum, two := strings.Cut(rest, ".")
	if !ok || !two {
		return t, false
	}
	header, ok := decode(head)
	if !ok || !t.header(header) {
		return t, false
	}
	payload, ok := decode(body)
	if !ok || !t.Claims.parse(payload) {
		return t, false
	}
	t.Signature, ok = decode(sum)
	t.Signed = text[:len(head)+1+len(body)]
	return t, ok
}

// decode reads base64url; a dot is not part of it, so no fourth part passes.
func decode(s string) ([]byte, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return b, err == nil && len(b) > 0
}

// refused are the header parameters (RFC 7515 section 4.1, RFC 7797) that a
// token of ours never has.
var refused = [...]string{"crit", "b64", "jwk", "jku", "x5c", "x5u"}

// header reads a header into t; it reports whether it is one that may be
// trusted.
func (t *Token) header(b []byte) bool {
	m, ok := object(b)
	if !ok {
		return false
	}
	for _, name := range refused {
		if _, there := m.find(name); there {
			return false
		}
	}
	alg, _ := m.text("alg")
	if t.Alg, ok = AlgOf(alg); !ok {
		return false
	}
	if _, there := m.find("typ"); there {
		if t.Type, ok = m.text("typ"); !ok {
			return false
		}
	}
	t.KeyID, ok = m.text("kid")
	return ok && t.KeyID != "" && len(t.KeyID) <= maxName
}

// members is a JSON object taken apart.
type members struct {
	b  []byte
	at map[string]jsonscan.Value // by name, decoded
}

// object reads b, which must be one object in which no name stands twice,
// however it is spelled.
func object(b []byte) (m members, ok bool) {
	if jsonscan.Compact(b, maxDepth) != nil {
		return m, false
	}
	root := jsonscan.Root(b)
	if root.Kind(b) != jsonscan.Object {
		return m, false
	}
	m.b, m.at = b, map[string]jsonscan.Value{}
	for w := jsonscan.Members(b, root); w.Step(); {
		name := string(jsonscan.Append(nil, w.Name))
		if _, twice := m.find(name); twice || len(m.at) == maxMembers {
			return m, false
		}
		m.at[name] = w.Value
	}
	return m, true
}

// find returns the place of the member called name.
func (m members) find(name string) (jsonscan.Value, bool) {
	v, ok := m.at[name]
	return v, ok
}

// text returns the string called name; ok is false when there is none.
func (m members) text(name string) (s string, ok bool) {
	v, ok := m.find(name)
	if !ok {
		return "", false
	}
	return m.string(v)
}

// string decodes a value that must be a string.
func (m members) string(v jsonscan.Value) (s string, ok bool) {
	if v.Kind(m.b) != jsonscan.String {
		return "", false
	}
	return string(jsonscan.Append(nil, v.Text(m.b))), true
}
