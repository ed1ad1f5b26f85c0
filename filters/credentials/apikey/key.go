// Package apikey reads the text of an API key and decides, by the record that the
// control plane keeps of it, whether the key is good.
package apikey

import (
	"crypto/sha256"
	"hash/crc32"

	"sluice.dev/sluice/filters/credentials/keytable"
)

// The text of an API key is
//
//	slk_<13 digits of its id>_<32 characters of secret><6 characters of checksum>
//
// The id lets people find a key in a list without its secret; the fixed form
// and the checksum let a secret scanner recognise a leaked one, and an edge
// refuse a mistyped one, without a look-up.
const (
	// Prefix begins every key of ours.
	Prefix    = "slk_"
	secretLen = 32
	sumLen    = 6
	secretAt  = len(Prefix) + keytable.IDLen + 1
	sumAt     = secretAt + secretLen
	// KeyLen is the length of a key's text in bytes.
	KeyLen = sumAt + sumLen
)

// SecretBytes is how much randomness FormatKey asks for.
const SecretBytes = 32

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// FormatKey gives the text of the key with number id; random comes from a
// cryptographic source. A byte gives one of 62 characters with a slight bias,
// which leaves more than 186 of the 190 bits.
func FormatKey(id uint64, random [SecretBytes]byte) string {
	b := make([]byte, 0, KeyLen)
	b = append(b, Prefix...)
	b = keytable.AppendID(b, id)
	b = append(b, '_')
	for _, r := range random {
		b = append(b, base62[int(r)%62])
	}
	return string(appendSum(b))
}

// WellFormed reports whether text has the form and checksum of a key. It says
// nothing about whether such a key exists. A text of another length than a key's
// costs nothing.
func WellFormed(text string) bool {
	if len(text) != KeyLen || text[:len(Prefix)] != Prefix || text[secretAt-1] != '_' {
		return false
	}
	var want [KeyLen]byte
	copy(want[:], text[:sumAt])
	return string(appendSum(want[:sumAt])) == text
}

// Hash is the SHA-256 of a key's text: what is stored of it.
func Hash(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

func appendSum(b []byte) []byte {
	sum := crc32.ChecksumIEEE(b)
	for range sumLen {
		b = append(b, base62[sum%62])
		sum /= 62
	}
	return b
}
