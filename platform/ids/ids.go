// Package ids makes the public identifiers of rows: a prefix that names the kind,
// and 26 characters that sort by time.
package ids

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// alphabet is Crockford's, in lower case, which sorts as the bytes do.
var alphabet = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// New returns prefix and 26 characters: 48 bits of time, so that ids sort by it
// and indexes stay compact, and 80 random bits.
func New(prefix string, at time.Time) string {
	raw := stamp(at)
	rand.Read(raw[6:])
	return prefix + alphabet.EncodeToString(raw[:])
}

// First returns the lowest id of a time: those of earlier times are smaller.
func First(prefix string, at time.Time) string {
	raw := stamp(at)
	return prefix + alphabet.EncodeToString(raw[:])
}

// stamp has the time in its first 48 bits.
func stamp(at time.Time) (raw [16]byte) {
	binary.BigEndian.PutUint64(raw[:8], uint64(max(0, at.UnixMilli()))<<16)
	return raw
}
