// Package ident makes the identifiers and secrets of the media product.
package ident

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"strings"
)

// alphabet has 32 letters, so that each random byte's low five bits pick one
// without bias. Letters that are read as digits (i, l, o, u) are left out.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// Length is the number of letters after an identifier's prefix: 100 random bits.
const Length = 20

// secretLength gives stream keys 160 random bits.
const secretLength = 32

// New returns prefix, an underscore and Length random letters, such as
// strm_7h2k….
func New(prefix string) string { return prefix + "_" + letters(Length) }

// Valid reports whether id has the form that New gives for prefix.
func Valid(prefix, id string) bool {
	rest, ok := strings.CutPrefix(id, prefix+"_")
	return ok && len(rest) == Length && strings.Trim(rest, alphabet) == ""
}

// Secret is a credential that is shown once and stored as its hash.
type Secret struct {
	Text string
	Hash []byte // SHA-256 of Text
	Hint string // the last four letters, for people to tell keys apart
}

// NewSecret returns a fresh secret whose text begins with prefix and an underscore.
func NewSecret(prefix string) Secret {
	text := prefix + "_" + letters(secretLength)
	return Secret{Text: text, Hash: hash(text), Hint: text[len(text)-4:]}
}

// Matches reports in constant time whether text is the secret with this hash.
func Matches(text string, want []byte) bool {
	return subtle.ConstantTimeCompare(hash(text), want) == 1
}

// hash is SHA-256. Secrets of ours are random and long: nothing slower is
// needed.
func hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// letters returns n random letters.
func letters(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	for i := range b {
		b[i] = alphabet[b[i]%32]
	}
	return string(b)
}
