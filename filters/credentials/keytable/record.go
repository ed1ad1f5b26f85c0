// Package keytable encodes what the control plane tells edges about credentials, and
// looks it up: records of 64 bytes, found by the first 16
// bytes of a SHA-256, in buckets that an edge keeps in Envoy's shared data.
//
// Records have no pointers and no variable parts, so an edge looks one up with
// one host call and without allocating, whatever the number of keys.
package keytable

import (
	"crypto/sha256"
	"encoding/binary"
)

// RecordSize is the length of a record in bytes.
const RecordSize = 64

// Tag identifies a record: the first 16 bytes of a SHA-256. To forge a key that
// meets a given tag takes about 2^128 tries.
type Tag [16]byte

// Kind says what a record is about. The zero Kind is a tombstone: the record
// with this tag is gone.
type Kind uint8

// The kinds of record.
const (
	KindNone   Kind = 0 // tombstone
	KindKey    Kind = 1 // an API key
	KindLimit  Kind = 2 // a limit of one account and class that differs from its plan's
	KindSecret Kind = 3 // a secret shared by edges and services
	KindToken  Kind = 4 // a session or grant that was ended before its expiry
	// KindAccount is what a key's record says of its account, for callers that
	// come with a token: plan and flags.
	KindAccount Kind = 5
	// KindPart is a part of a value that is longer than a record, see Split.
	KindPart Kind = 6
	// KindImports says that the table has keys that another system issued, see
	// TagOfImports.
	KindImports Kind = 7
	// KindRevoked names client certificates that are no longer accepted, see
	// clientcert.Revoked.
	KindRevoked Kind = 8
)

// Flags of a key's or an account's record.
const (
	FlagLimits    uint8 = 1 << 0 // the account has KindLimit records
	FlagUnpaid    uint8 = 1 << 1 // an unpaid invoice blocks the account
	FlagAllowlist uint8 = 1 << 2 // the account has an address allowlist, see TagOfAllowlist
	FlagQuotaUsed uint8 = 1 << 3 // the plan's usage limit is reached
)

// Scopes is a set of scope bits (the table `scopes` in Postgres numbers them).
type Scopes [2]uint64

// With returns s with bit set; bits are 0 to 127, any other is ignored.
func (s Scopes) With(bit int) Scopes {
	if bit >= 0 && bit < 128 {
		s[bit>>6] |= 1 << (bit & 63)
	}
	return s
}

// Has reports whether bit is in s.
func (s Scopes) Has(bit int) bool {
	return bit >= 0 && bit < 128 && s[bit>>6]&(1<<(bit&63)) != 0
}

// Meets reports whether s and any have a bit in common.
func (s Scopes) Meets(any Scopes) bool { return s[0]&any[0]|s[1]&any[1] != 0 }

// Record is one entry of the table. Which fields count depends on Kind.
type Record struct {
	Tag     Tag
	Kind    Kind
	Flags   uint8
	Plan    uint16 // key, account: number of the account's plan; part: length of the whole value
	Expires uint32 // key, token: unix seconds; 0: never
	ID      uint64 // key: number in its id, see FormatID
	Account uint64 // key, limit, account: number in the account's id
	Scopes  Scopes // key
	Limit   uint32 // key, limit: requests a minute; 0: no limit of its own; part: checksum of the whole value
	Secret  [32]byte
}

// opaque reports whether a record of the kind holds bytes in place of numbers.
func (k Kind) opaque() bool { return k == KindSecret || k == KindPart || k == KindRevoked }

// Append appends the record's 64 bytes to dst.
func (r Record) Append(dst []byte) []byte {
	dst = append(dst, r.Tag[:]...)
	dst = append(dst, byte(r.Kind), r.Flags)
	dst = binary.LittleEndian.AppendUint16(dst, r.Plan)
	dst = binary.LittleEndian.AppendUint32(dst, r.Expires)
	if r.Kind.opaque() {
		dst = append(dst, r.Secret[:]...)
	} else {
		dst = binary.LittleEndian.AppendUint64(dst, r.ID)
		dst = binary.LittleEndian.AppendUint64(dst, r.Account)
		dst = binary.LittleEndian.AppendUint64(dst, r.Scopes[0])
		dst = binary.LittleEndian.AppendUint64(dst, r.Scopes[1])
	}
	dst = binary.LittleEndian.AppendUint32(dst, r.Limit)
	return append(dst, 0, 0, 0, 0)
}

// Decode reads the record at the start of b; ok is false when b is too short.
func Decode(b []byte) (r Record, ok bool) {
	if len(b) < RecordSize {
		return r, false
	}
	copy(r.Tag[:], b)
	r.Kind, r.Flags = Kind(b[16]), b[17]
	r.Plan = binary.LittleEndian.Uint16(b[18:])
	r.Expires = binary.LittleEndian.Uint32(b[20:])
	if r.Kind.opaque() {
		copy(r.Secret[:], b[24:56])
	} else {
		r.ID = binary.LittleEndian.Uint64(b[24:])
		r.Account = binary.LittleEndian.Uint64(b[32:])
		r.Scopes = Scopes{binary.LittleEndian.Uint64(b[40:]), binary.LittleEndian.Uint64(b[48:])}
	}
	r.Limit = binary.LittleEndian.Uint32(b[56:])
	return r, true
}

// Expired reports whether the record has ended at now, in unix seconds.
func (r Record) Expired(now int64) bool { return r.Expires != 0 && now >= int64(r.Expires) }

// TagOfKey is the tag of the API key whose text has the SHA-256 sum.
func TagOfKey(sum [sha256.Size]byte) Tag { return Tag(sum[:16]) }

// TagOfImports is the tag of the record without which an edge looks for no key that
// another system issued.
func TagOfImports() Tag { return imports }

var imports = tagOf([]byte("imports"))

// TagOfLimit is the tag of the limit of an account in a rate class.
func TagOfLimit(account uint64, class string) Tag {
	b := binary.LittleEndian.AppendUint64([]byte("limit\x00"), account)
	return tagOf(append(b, class...))
}

// TagOfAccount is the tag of an account's own record.
func TagOfAccount(account uint64) Tag {
	return tagOf(binary.LittleEndian.AppendUint64([]byte("account\x00"), account))
}

// TagOfAllowlist is the tag of the addresses from which an account may call.
func TagOfAllowlist(account uint64) Tag {
	return tagOf(binary.LittleEndian.AppendUint64([]byte("allow\x00"), account))
}

// TagOfIssuerKey is the tag of the key with which an issuer signs tokens. An
// issuer's name has no NUL in it.
func TagOfIssuerKey(issuer, kid string) Tag {
	return tagOf([]byte("issuer\x00" + issuer + "\x00" + kid))
}

// TagOfSecret is the tag of a named secret.
func TagOfSecret(name string) Tag { return tagOf([]byte("secret\x00" + name)) }

// TagOfToken is the tag of the session or grant with the given id.
func TagOfToken(id string) Tag { return tagOf([]byte("token\x00" + id)) }

func tagOf(b []byte) Tag {
	sum := sha256.Sum256(b)
	return Tag(sum[:16])
}
