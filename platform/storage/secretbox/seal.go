// Package secretbox keeps secrets at rest: AES-256-GCM under a key that is not in
// the database, bound to the row that they belong to.
package secretbox

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// MinKey is the least length of key text, in bytes.
const MinKey = 32

// version is the first byte of everything sealed; it names the construction.
const version = 1

// ErrOpen says that a value cannot be opened: it was sealed with another key,
// for another row, or has been changed.
var ErrOpen = errors.New("sealed value cannot be opened with the configured keys")

// Box seals and opens.
type Box struct {
	aeads []cipher.AEAD // the first seals, all open
}

// New makes a box from key texts of at least MinKey bytes each. The first one
// seals; the others only open, so that the key can be changed without a gap.
func New(keys ...string) (*Box, error) {
	if len(keys) == 0 {
		return nil, errors.New("no key to seal secrets with")
	}
	b := &Box{}
	for _, k := range keys {
		if len(k) < MinKey {
			return nil, fmt.Errorf("a key for secrets needs at least %d bytes", MinKey)
		}
		aead, err := newAEAD(k)
		if err != nil {
			return nil, err
		}
		b.aeads = append(b.aeads, aead)
	}
	return b, nil
}

// newAEAD derives the key from its text, so that the text may be of any form, and
// lets the cipher choose nonces: 96 random bits are safe for 2^32 secrets.
func newAEAD(text string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(text), nil, "sluice webhook secrets", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Seal encrypts plain for row: the id of what it belongs to. A sealed value
// copied to another row does not open there.
func (b *Box) Seal(plain []byte, row string) []byte {
	return b.aeads[0].Seal([]byte{version}, nil, plain, []byte(row))
}

// Open returns what Seal was given, or ErrOpen.
//
// It takes time linear in sealed for each key, and memory for the text.
func (b *Box) Open(sealed []byte, row string) ([]byte, error) {
	if len(sealed) < 1 || sealed[0] != version {
		return nil, ErrOpen
	}
	for _, aead := range b.aeads {
		if plain, err := aead.Open(nil, nil, sealed[1:], []byte(row)); err == nil {
			return plain, nil
		}
	}
	return nil, ErrOpen
}

// Current reports whether a value was sealed with the first key.
func (b *Box) Current(sealed []byte, row string) bool {
	first := Box{b.aeads[:1]}
	_, err := first.Open(sealed, row)
	return err == nil
}

// NewKey returns a random key text, for a first start.
func NewKey() string { return rand.Text() + rand.Text() }
