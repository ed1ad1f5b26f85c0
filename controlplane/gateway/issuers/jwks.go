// Package issuers fetches the public keys that tokens are verified with: it reads
// the key sets of this platform and of the issuers in the configuration, keeps them
// in Postgres, and puts them into the key feed for edges. So a
// key that is new, or withdrawn, reaches edges without a new policy, and edges
// keep the last good keys whatever becomes of an issuer.
package issuers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"sluice.dev/sluice/filters/credentials/jwt"
	"sluice.dev/sluice/filters/credentials/keytable"
)

// Limits of a key set.
const (
	MaxBody = 256 << 10 // bytes of its text
	maxKeys = 64        // that can be used
	maxAll  = 1024      // with those that cannot
	maxKid  = 512       // bytes of a key's id; edges refuse longer ones
)

// Key is a public key with its id.
type Key struct {
	ID string
	jwt.Key
}

// jwk is a public key in JSON (RFC 7517, RFC 7518 section 6, RFC 8037).
type jwk struct {
	Type  string `json:"kty"`
	Use   string `json:"use"`
	Alg   string `json:"alg"`
	ID    string `json:"kid"`
	Curve string `json:"crv"`
	X     string `json:"x"`
	Y     string `json:"y"`
	N     string `json:"n"`
	E     string `json:"e"`
}

// ErrNoKey says that a well-formed key set has no key of use to an edge: the issuer
// has taken them all away.
var ErrNoKey = errors.New("the key set has no usable key")

// Parse reads a key set and returns the keys that an edge can use: for
// signatures, with an id, of P-256, Ed25519, or RSA of 2048 to 8192 bits. It
// passes over others, such as keys for encryption, and fails when none is left,
// when an id stands twice among them, or when the text is no key set. An RSA
// key that names no algorithm is for RS256.
//
// It takes time linear in b, which holds at most MaxBody, and allocates at most 64
// bytes for each of them, and 2 MiB; its errors quote at most an id of 512 bytes.
func Parse(b []byte) ([]Key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if len(b) > MaxBody {
		return nil, fmt.Errorf("the key set is larger than %d bytes", MaxBody)
	}
	if err := json.Unmarshal(b, &set); err != nil {
		return nil, fmt.Errorf("the key set is not JSON: %w", err)
	}
	if set.Keys == nil {
		return nil, errors.New("the key set has no member keys")
	}
	if len(set.Keys) > maxAll {
		return nil, fmt.Errorf("the key set has more than %d members", maxAll)
	}
	var list []Key
	seen := map[string]bool{}
	for _, raw := range set.Keys {
		k, ok := parseKey(raw)
		if !ok {
			continue
		}
		if seen[k.ID] {
			return nil, fmt.Errorf("the key set has two keys called %q", k.ID)
		}
		seen[k.ID] = true
		if list = append(list, k); len(list) > maxKeys {
			return nil, fmt.Errorf("the key set has more than %d keys", maxKeys)
		}
	}
	if len(list) == 0 {
		return nil, ErrNoKey
	}
	return list, nil
}

// parseKey reads one key of a set; ok is false for one that edges have no use for.
func parseKey(raw []byte) (Key, bool) {
	var j jwk
	if json.Unmarshal(raw, &j) != nil || j.ID == "" || len(j.ID) > maxKid || strings.ContainsRune(j.ID, 0) || j.Use != "" && j.Use != "sig" {
		return Key{}, false
	}
	alg, public := j.public()
	k := Key{j.ID, jwt.Key{Alg: alg, Public: public}}
	return k, len(public) > 0 && len(k.Append(nil)) <= keytable.MaxValue
}

// public returns the key in the form that edges use; nothing for a key of
// another kind.
func (j jwk) public() (jwt.Alg, []byte) {
	switch {
	case j.Type == "EC" && j.Curve == "P-256" && (j.Alg == "" || j.Alg == "ES256"):
		return jwt.ES256, j.point()
	case j.Type == "OKP" && j.Curve == "Ed25519" && (j.Alg == "" || j.Alg == "EdDSA" || j.Alg == "Ed25519"):
		if x := decode(j.X); len(x) == 32 {
			return jwt.EdDSA, x
		}
	case j.Type == "RSA" && (j.Alg == "" || j.Alg == "RS256"):
		if k := j.rsa(); k != nil {
			return jwt.RS256, spki(k)
		}
	case j.Type == "RSA" && j.Alg == "PS256":
		if k := j.rsa(); k != nil {
			return jwt.PS256, jwt.RSA(k.N.Bytes(), uint32(k.E))
		}
	}
	return 0, nil
}

// point returns nothing for a point that is not on the curve.
func (j jwk) point() []byte {
	x, y := decode(j.X), decode(j.Y)
	if len(x) != 32 || len(y) != 32 {
		return nil
	}
	k, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	if err != nil {
		return nil
	}
	return spki(k)
}

// rsa returns nothing for a modulus or an exponent that is too small to be safe,
// or so large that checking signatures would cost an edge too much.
func (j jwk) rsa() *rsa.PublicKey {
	n, e := new(big.Int).SetBytes(decode(j.N)), new(big.Int).SetBytes(decode(j.E))
	if n.BitLen() < 2048 || n.BitLen() > 8192 || n.Bit(0) == 0 || e.BitLen() > 31 || e.Bit(0) == 0 || e.Cmp(big.NewInt(3)) < 0 {
		return nil
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}
}

// decode returns nothing for what is not base64url.
func decode(s string) []byte {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return b
}

// spki is the key as SubjectPublicKeyInfo; nothing for a key that has no such form.
func spki(k any) []byte {
	b, err := x509.MarshalPKIXPublicKey(k)
	if err != nil {
		return nil
	}
	return b
}
