package jwt

import "encoding/binary"

// Key is a public key in the form in which an edge checks signatures with it.
type Key struct {
	Alg Alg
	// Public is, for ES256 and RS256, the SubjectPublicKeyInfo in DER; for
	// PS256 the exponent in 4 bytes and then the modulus, big endian; for EdDSA
	// the 32 bytes of the point.
	Public []byte
}

// Append appends the key's bytes to dst.
func (k Key) Append(dst []byte) []byte {
	return append(append(dst, byte(k.Alg)), k.Public...)
}

// ParseKey reads what Append wrote; it shares b's memory.
func ParseKey(b []byte) (k Key, ok bool) {
	if len(b) < 2 || Alg(b[0]).String() == "" {
		return k, false
	}
	return Key{Alg(b[0]), b[1:]}, true
}

// RSA gives the form of a PS256 key.
func RSA(modulus []byte, exponent uint32) []byte {
	return append(binary.BigEndian.AppendUint32(nil, exponent), modulus...)
}
