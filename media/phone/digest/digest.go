// Package digest checks the passwords of lines by SIP's digest authentication (RFC 3261,
// 22.4; RFC 2617) with MD5: telephones that know nothing else give up when another
// algorithm (RFC 8760) is offered beside it, and passwords are ours, of 160 random bits.
// Challenges are not kept: a nonce says itself when and for whom it was made, under a key
// that only this process has.
package digest

import (
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // telephones of today still know nothing else
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"time"

	icholy "github.com/icholy/digest"
)

// Realm is the realm of every line.
const Realm = "sluice"

// Secret is what checks a password: MD5(user:realm:password).
type Secret [md5.Size]byte

// SecretOf makes the secret of a user's password.
func SecretOf(user, password string) Secret {
	return md5.Sum([]byte(user + ":" + Realm + ":" + password)) //nolint:gosec // see above
}

// ReadSecret reads the bytes of a secret.
func ReadSecret(raw []byte) (s Secret, ok bool) {
	ok = len(raw) == len(s)
	copy(s[:], raw)
	return s, ok
}

// nonceLife is how long an answer to a challenge is taken.
const nonceLife = 60 * time.Second

// Key signs nonces.
type Key [32]byte

// NewKey makes a key.
func NewKey() (k Key) {
	rand.Read(k[:]) // never fails: crypto/rand ends the program instead
	return k
}

// nonce lengths, in bytes: a time, a random part and a signature.
const (
	nonceHead = 16
	nonceTail = 16
)

// Nonce makes a nonce for whoever comes from addr.
func (k Key) Nonce(addr netip.Addr, now time.Time) string {
	raw := make([]byte, nonceHead, nonceHead+nonceTail)
	binary.BigEndian.PutUint64(raw, uint64(now.UnixMilli()))
	rand.Read(raw[8:])
	return base64.RawURLEncoding.EncodeToString(append(raw, k.sign(raw, addr)...))
}

// sign is the signature of a nonce's head for addr.
func (k Key) sign(head []byte, addr netip.Addr) []byte {
	mac := hmac.New(sha256.New, k[:])
	mac.Write(head)
	mac.Write(addr.AsSlice())
	return mac.Sum(nil)[:nonceTail]
}

// ours reports whether a nonce was made by k for addr, and whether it is fresh.
func (k Key) ours(nonce string, addr netip.Addr, now time.Time) (ours, fresh bool) {
	raw, err := base64.RawURLEncoding.DecodeString(nonce)
	if err != nil || len(raw) != nonceHead+nonceTail {
		return false, false
	}
	if subtle.ConstantTimeCompare(k.sign(raw[:nonceHead], addr), raw[nonceHead:]) != 1 {
		return false, false
	}
	age := now.Sub(time.UnixMilli(int64(binary.BigEndian.Uint64(raw))))
	return true, age >= -time.Second && age <= nonceLife
}

// Challenge is the value of WWW-Authenticate.
func (k Key) Challenge(addr netip.Addr, now time.Time, stale bool) string {
	text := fmt.Sprintf(`Digest realm="%s", nonce="%s", algorithm=MD5, qop="auth"`, Realm, k.Nonce(addr, now))
	if stale {
		text += ", stale=true"
	}
	return text
}

// Answer is what a telephone has sent in Authorization.
type Answer struct {
	User, URI string
	Nonce     string
	Count     int // nc: a number that may be used once with a nonce

	credentials icholy.Credentials
}

// maxHeader bounds an Authorization header, in bytes.
const maxHeader = 1 << 10

// Read reads an Authorization header; false: it is none that we take. It takes time
// and memory linear in text, which it refuses beyond 1 KiB.
func Read(text string) (Answer, bool) {
	if len(text) > maxHeader {
		return Answer{}, false
	}
	c, err := icholy.ParseCredentials(text)
	if err != nil || c.Realm != Realm || c.QOP != "auth" || c.Cnonce == "" || c.Nc < 1 || c.Userhash {
		return Answer{}, false
	}
	return Answer{User: c.Username, URI: c.URI, Nonce: c.Nonce, Count: c.Nc, credentials: *c}, true
}

// Verdict is what an answer is worth.
type Verdict int

// The verdicts.
const (
	Wrong Verdict = iota
	Stale         // to a challenge of before, or to none of ours: whoever sends it may not even be at addr
	Right
)

// Check says whether a is the answer of who knows the password behind s, to a challenge
// that k made for addr. It compares in constant time.
func (k Key) Check(a Answer, s Secret, method string, addr netip.Addr, now time.Time) Verdict {
	c := a.credentials
	if c.Algorithm != "" && !strings.EqualFold(c.Algorithm, "MD5") {
		return Wrong
	}
	if ours, fresh := k.ours(c.Nonce, addr, now); !ours || !fresh {
		return Stale
	}
	want := hash(strings.Join([]string{hex.EncodeToString(s[:]), c.Nonce, fmt.Sprintf("%08x", c.Nc), c.Cnonce, c.QOP, hash(method + ":" + c.URI)}, ":"))
	if subtle.ConstantTimeCompare([]byte(want), []byte(strings.ToLower(c.Response))) != 1 {
		return Wrong
	}
	return Right
}

func hash(text string) string {
	sum := md5.Sum([]byte(text)) //nolint:gosec // see above
	return hex.EncodeToString(sum[:])
}
