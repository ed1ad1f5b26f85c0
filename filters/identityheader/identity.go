// Package identityheader signs and verifies the header by which an edge tells a product
// who calls.
//
// The edge puts one header, Header, on every request that it lets pass with a
// credential, in place of whatever the client sent under that name. Its value
// is
//
//	v2;u=<product>;a=<account>;k=<credential>;p=<plan>;s=<scopes>;e=<unix seconds>;m=<hex HMAC-SHA256>
//
// where the MAC covers everything before ";m=". Scopes are names joined by
// commas. A value lives for at most Lifetime, so one that leaks is soon worth
// nothing; the edge signs a new one well before the old one ends.
//
// The MAC is made with the secret of the product that the value names, which is
// derived from the platform's (ProductSecret): who has a product's secret, or a
// value that was meant for it, is nobody at another product. The form of before,
//
//	v1;a=<account>;k=…
//
// names nobody and is signed with the platform's own secret. Whoever holds that
// secret still signs and takes it.
package identityheader

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
)

// Header is the name of the identity header, in lower case as on HTTP/2.
const Header = "x-sluice-identity"

// AddressHeader carries the client's address to products, without a port. What
// clients send under its name is dropped.
const AddressHeader = "x-sluice-client-address"

// Lifetime is how long a signed value is accepted, in seconds.
const Lifetime = 60

// Leeway is how long after its end a value is still accepted, in seconds: the clock
// of an edge may be that much behind that of the product.
const Leeway = 30

// Former is the name under which edges find the products, joined by commas, that
// are told the first form still: those verify by themselves, and do not know
// another yet.
const Former = "identity-v1"

// maxLen bounds a value before it is looked at: 128 scopes of 40 bytes fit.
const maxLen = 8192

// Caller is who calls: the account, its plan, and the credential used.
type Caller struct {
	Account string   // acct_…; empty for a paying agent without an account
	Key     string   // key_…, sess_… or pay_…: the credential, never its secret; EdgeKey
	Plan    string   // name of the plan
	Scopes  []string // as granted, wildcards included
}

// The credentials of callers who have none of an account.
const (
	// EdgeKey is that of an edge which calls the control plane for itself.
	EdgeKey = "edge"
	// PayerPrefix opens that of a paying agent: its address follows, so that
	// whatever it makes stays its own from one payment to the next.
	PayerPrefix = "pay_"
)

// Errors of Verify.
var (
	ErrMalformed = errors.New("identity header is malformed")
	ErrSignature = errors.New("identity header is not signed by an edge of ours")
	ErrExpired   = errors.New("identity header has expired")
)

// ProductSecret derives the secret by which a product tells that an edge has
// signed, from the platform's secret; nil from none. The platform's cannot be had
// from it.
func ProductSecret(platform []byte, product string) []byte {
	if len(platform) == 0 {
		return nil
	}
	return mac(platform, append([]byte("sluice identity v2\x00"), product...))
}

// Sign returns the header value for c, signed with the platform's secret and
// valid until now+Lifetime; now is in unix seconds. Names in c must not contain
// ';' or ','.
func Sign(secret []byte, c Caller, now int64) string {
	return sign(secret, append(make([]byte, 0, 256), formV1...), c, now)
}

// SignFor is like Sign, for one product, whose name must not contain ';', with the
// secret of that product.
func SignFor(secret []byte, product string, c Caller, now int64) string {
	b := append(make([]byte, 0, 256), formV2...)
	b = append(b, product...)
	return sign(secret, append(b, ';'), c, now)
}

const (
	formV1 = "v1;"
	formV2 = "v2;u="
)

func sign(secret, b []byte, c Caller, now int64) string {
	b = append(b, "a="...)
	b = append(b, c.Account...)
	b = append(b, ";k="...)
	b = append(b, c.Key...)
	b = append(b, ";p="...)
	b = append(b, c.Plan...)
	b = append(b, ";s="...)
	for i, s := range c.Scopes {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, s...)
	}
	b = append(b, ";e="...)
	b = strconv.AppendInt(b, now+Lifetime, 10)
	sum := mac(secret, b)
	b = append(b, ";m="...)
	return string(hex.AppendEncode(b, sum))
}

// Product is the product that a value says it is for; "" for one of the form of
// before, and for one of no form. Nothing is verified: it tells which secret to
// verify with. It costs a look at each byte up to the name's end.
func Product(value string) string {
	rest, ok := strings.CutPrefix(value, formV2)
	name, _, whole := strings.Cut(rest, ";")
	if !ok || !whole {
		return ""
	}
	return name
}

// VerifyFor returns the caller that value names to a product, if one of secrets,
// which are that product's, signed it, and it has not expired, Leeway included.
func VerifyFor(secrets [][]byte, product, value string, now int64) (Caller, error) {
	return verify(secrets, formV2+product+";", value, now)
}

// Verify returns the caller that value names if one of secrets, which are the
// platform's, signed it and it has not expired, Leeway included. Several secrets
// let them be rotated without a gap.
func Verify(secrets [][]byte, value string, now int64) (Caller, error) {
	return verify(secrets, formV1, value, now)
}

// verify costs one MAC over the value, of at most maxLen bytes, for each secret.
func verify(secrets [][]byte, form, value string, now int64) (Caller, error) {
	if len(value) > maxLen {
		return Caller{}, ErrMalformed
	}
	signed, sum, ok := strings.Cut(value, ";m=")
	want, err := hex.DecodeString(sum)
	if !ok || err != nil || len(want) != sha256.Size {
		return Caller{}, ErrMalformed
	}
	if !signedByAny(secrets, []byte(signed), want) {
		return Caller{}, ErrSignature
	}
	return parse(signed, form, now)
}

func signedByAny(secrets [][]byte, signed, want []byte) bool {
	found := false
	for _, s := range secrets {
		if len(s) > 0 && hmac.Equal(mac(s, signed), want) {
			found = true
		}
	}
	return found
}

func parse(signed, form string, now int64) (Caller, error) {
	rest, ok := strings.CutPrefix(signed, form)
	if !ok {
		return Caller{}, ErrMalformed
	}
	fields := strings.Split(rest, ";")
	keys := [...]string{"a=", "k=", "p=", "s=", "e="}
	if len(fields) != len(keys) {
		return Caller{}, ErrMalformed
	}
	for i, k := range keys {
		if fields[i], ok = strings.CutPrefix(fields[i], k); !ok {
			return Caller{}, ErrMalformed
		}
	}
	until, err := strconv.ParseInt(fields[4], 10, 64)
	if err != nil {
		return Caller{}, ErrMalformed
	}
	if now >= until+Leeway {
		return Caller{}, ErrExpired
	}
	c := Caller{Account: fields[0], Key: fields[1], Plan: fields[2]}
	if fields[3] != "" {
		c.Scopes = strings.Split(fields[3], ",")
	}
	return c, nil
}

func mac(secret, msg []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write(msg)
	return h.Sum(nil)
}
