package apikey

import (
	"crypto/sha256"
	"strings"
)

// Bounds of a key's text that another system issued, in bytes. A shorter one can be
// guessed; a longer one is no key.
const (
	MinImported = 16
	MaxImported = 512
)

// Importable reports whether an edge looks for text among the keys that another
// system issued: MinImported to MaxImported visible ASCII characters without a
// comma. What tokens take the form of, see LooksLikeToken, is a token where a route
// takes those. It takes time linear in the text.
func Importable(text string) bool {
	return len(text) >= MinImported && len(text) <= MaxImported && visible(text)
}

// LooksLikeToken reports whether text begins as a JSON Web Token does: with an object
// in base64, and a dot behind it.
func LooksLikeToken(text string) bool {
	return len(text) > 1 && text[0] == 'e' && (text[1] == 'y' || text[1] == 'w') && strings.IndexByte(text, '.') > 0
}

// ImportedHash is what is stored of a key that another system issued, of whose text
// sum is the SHA-256. It is hashed once more, under a name: whoever supplies a table
// of hashes can then not choose the tag of another record, such as an account's or a
// secret's, nor that of a key of ours.
func ImportedHash(sum [sha256.Size]byte) [sha256.Size]byte {
	const domain = "imported\x00"
	var b [len(domain) + sha256.Size]byte
	copy(b[copy(b[:], domain):], sum[:])
	return sha256.Sum256(b[:])
}

// visible reports whether text has visible ASCII characters only, and no comma.
func visible(text string) bool {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || c == ',' {
			return false
		}
	}
	return true
}
