// Package signature checks the signatures that Envoy does not: its own function
// knows ECDSA and RSA PKCS#1 v1.5, but neither RSA PSS nor Ed25519. A check
// takes some hundred microseconds in WASM, where Envoy's takes fifty or less.
package signature

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"math/big"

	"sluice.dev/sluice/filters/credentials/jwt"
)

// Verify reports whether sum is k's signature of signed. It is false for keys
// of other algorithms than PS256 and EdDSA.
func Verify(k jwt.Key, signed, sum []byte) bool {
	switch k.Alg {
	case jwt.PS256:
		return pss(k.Public, signed, sum)
	case jwt.EdDSA:
		return len(k.Public) == ed25519.PublicKeySize && ed25519.Verify(k.Public, signed, sum)
	}
	return false
}

// pss wants a salt as long as the hash (RFC 7518 section 3.5).
func pss(public, signed, sum []byte) bool {
	if len(public) < 4 {
		return false
	}
	key := &rsa.PublicKey{E: int(binary.BigEndian.Uint32(public)), N: new(big.Int).SetBytes(public[4:])}
	hash := sha256.Sum256(signed)
	return rsa.VerifyPSS(key, crypto.SHA256, hash[:], sum, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
}
