package signature

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"testing"

	"sluice.dev/sluice/filters/credentials/jwt"
)

func TestGoodAndTampered(t *testing.T) {
	t.Parallel()
	message := []byte("header.payload")
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(message)
	pss, err := rsa.SignPSS(rand.Reader, private, crypto.SHA256, hash[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	if err != nil {
		t.Fatal(err)
	}
	salted, err := rsa.SignPSS(rand.Reader, private, crypto.SHA256, hash[:], &rsa.PSSOptions{SaltLength: 20})
	if err != nil {
		t.Fatal(err)
	}
	public, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ps := jwt.Key{Alg: jwt.PS256, Public: jwt.RSA(private.N.Bytes(), uint32(private.E))}
	ed := jwt.Key{Alg: jwt.EdDSA, Public: public}
	sum := ed25519.Sign(secret, message)
	flip := func(b []byte) []byte { c := bytes.Clone(b); c[len(c)/2] ^= 1; return c }
	for name, c := range map[string]struct {
		key          jwt.Key
		message, sum []byte
		want         bool
	}{
		"PS256":                      {ps, message, pss, true},
		"PS256, message changed":     {ps, flip(message), pss, false},
		"PS256, signature changed":   {ps, message, flip(pss), false},
		"PS256, a short salt":        {ps, message, salted, false},
		"PS256, no signature":        {ps, message, nil, false},
		"PS256, no key":              {jwt.Key{Alg: jwt.PS256}, message, pss, false},
		"PS256, a key of no bits":    {jwt.Key{Alg: jwt.PS256, Public: []byte{0, 1, 0, 1}}, message, pss, false},
		"PS256, an exponent of 0":    {jwt.Key{Alg: jwt.PS256, Public: jwt.RSA(private.N.Bytes(), 0)}, message, pss, false},
		"EdDSA":                      {ed, message, sum, true},
		"EdDSA, message changed":     {ed, flip(message), sum, false},
		"EdDSA, signature changed":   {ed, message, flip(sum), false},
		"EdDSA, a short key":         {jwt.Key{Alg: jwt.EdDSA, Public: public[:31]}, message, sum, false},
		"EdDSA, a short signature":   {ed, message, sum[:63], false},
		"EdDSA's under PS256":        {jwt.Key{Alg: jwt.PS256, Public: public}, message, sum, false},
		"an algorithm of the host's": {jwt.Key{Alg: jwt.RS256, Public: ps.Public}, message, pss, false},
	} {
		if Verify(c.key, c.message, c.sum) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}
