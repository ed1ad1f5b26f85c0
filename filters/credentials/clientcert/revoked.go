package clientcert

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"sluice.dev/sluice/filters/credentials/keytable"
)

// A certificate is revoked by its serial number and its issuer, which its authority
// has signed, and not by its SHA-256: whoever holds a certificate with an ECDSA
// signature can write that signature in another way that is as good, and the
// certificate then has another SHA-256.

// maxIssuers is how many issuers of one serial number a record has room for.
const maxIssuers = 4

// TagOfRevoked is the tag of the record of the revoked certificates with a serial
// number, in hexadecimal.
func TagOfRevoked(serial string) keytable.Tag {
	sum := sha256.Sum256([]byte("revoked certificate\x00" + Serial(serial)))
	return keytable.Tag(sum[:16])
}

// Serial writes a serial number in one way: in lower case, without leading zeros.
func Serial(hex string) string {
	if s := strings.TrimLeft(strings.ToLower(hex), "0"); s != "" {
		return s
	}
	return "0"
}

// Revoked makes the record of the revoked certificates with a serial number, of the
// issuers with these names in the form of RFC 2253. None, "" among them, or more than
// have room: whoever has issued it.
func Revoked(serial string, issuers []string) keytable.Record {
	r := keytable.Record{Tag: TagOfRevoked(serial), Kind: keytable.KindRevoked}
	if len(issuers) > maxIssuers {
		return r
	}
	for i, name := range issuers {
		if name == "" {
			r.Secret = [32]byte{}
			return r
		}
		binary.LittleEndian.PutUint64(r.Secret[8*i:], hashOfIssuer(name))
	}
	return r
}

// IsRevoked reports whether a record that was found under c.Revoked says that c is
// revoked.
func (c *Certificate) IsRevoked(r *keytable.Record) bool {
	if r.Kind != keytable.KindRevoked || r.Secret == [32]byte{} {
		return true
	}
	hash := hashOfIssuer(c.issuer)
	for i := range maxIssuers {
		if binary.LittleEndian.Uint64(r.Secret[8*i:]) == hash {
			return true
		}
	}
	return false
}

// hashOfIssuer is never 0.
func hashOfIssuer(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.LittleEndian.Uint64(sum[:]) | 1
}
