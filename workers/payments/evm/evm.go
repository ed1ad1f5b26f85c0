// Package evm implements the part of Ethereum that payments need: hashes of typed
// data (EIP-712), the signer of a transfer (EIP-3009), the calls of a token's
// contract, and transactions (EIP-1559). It is pure.
package evm

import (
	"encoding/hex"
	"fmt"
	"math/big"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"golang.org/x/crypto/sha3"
)

// Hash is Keccak-256 of the parts, one after the other.
func Hash(parts ...[]byte) (sum [32]byte) {
	h := sha3.NewLegacyKeccak256()
	for _, p := range parts {
		h.Write(p)
	}
	h.Sum(sum[:0])
	return sum
}

// Address is an account or a contract.
type Address [20]byte

// ParseAddress reads 0x and 40 hexadecimal digits.
func ParseAddress(s string) (a Address, err error) {
	b, err := Bytes(s, len(a))
	copy(a[:], b)
	return a, err
}

// String is 0x and 40 hexadecimal digits in small letters.
func (a Address) String() string { return "0x" + hex.EncodeToString(a[:]) }

// word is a in 32 bytes, as arguments and typed data have it.
func (a Address) word() []byte { return append(make([]byte, 12), a[:]...) }

// Bytes reads 0x and n bytes in hexadecimal. A text of another length is refused
// unread, and not repeated.
func Bytes(s string, n int) ([]byte, error) {
	if len(s) != 2+2*n || s[0] != '0' || s[1]|0x20 != 'x' {
		return nil, fmt.Errorf("not 0x and %d bytes in hexadecimal", n)
	}
	return hex.DecodeString(s[2:])
}

// Domain is what a signature is good for: one token on one chain.
type Domain struct {
	Name, Version string
	Chain         uint64
	Token         Address
}

var (
	domainType   = Hash([]byte("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"))
	transferType = Hash([]byte("TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"))
)

// Separator is the domain separator of EIP-712.
func (d Domain) Separator() [32]byte {
	name, version := Hash([]byte(d.Name)), Hash([]byte(d.Version))
	return Hash(domainType[:], name[:], version[:], word(new(big.Int).SetUint64(d.Chain)), d.Token.word())
}

// Transfer is what an EIP-3009 authorization lets anybody do once.
type Transfer struct {
	From, To                       Address
	Value, ValidAfter, ValidBefore *big.Int // natural numbers below 2^256
	Nonce                          [32]byte
}

// Digest is what the payer signs.
func (t Transfer) Digest(d Domain) [32]byte {
	separator := d.Separator()
	inner := Hash(transferType[:], t.arguments())
	return Hash([]byte{0x19, 0x01}, separator[:], inner[:])
}

// arguments are the six values as typed data and calls both have them.
func (t Transfer) arguments() []byte {
	b := append(t.From.word(), t.To.word()...)
	for _, n := range []*big.Int{t.Value, t.ValidAfter, t.ValidBefore} {
		b = append(b, word(n)...)
	}
	return append(b, t.Nonce[:]...)
}

// word is n in 32 bytes.
func word(n *big.Int) []byte { return n.FillBytes(make([]byte, 32)) }

// Signature is r, s and v.
type Signature [65]byte

// Signer returns who made signature s of digest. ok is false when the signature
// is not one that token contracts take: v must be 27 or 28, and s in the lower
// half of the group's order, so that a signature has no second spelling.
func (s Signature) Signer(digest [32]byte) (a Address, ok bool) {
	v := s[64]
	var half secp256k1.ModNScalar
	if v != 27 && v != 28 || half.SetByteSlice(s[32:64]) || half.IsOverHalfOrder() {
		return a, false
	}
	compact := append([]byte{v}, s[:64]...)
	key, _, err := ecdsa.RecoverCompact(compact, digest[:])
	if err != nil {
		return a, false
	}
	return addressOf(key), true
}

func addressOf(key *secp256k1.PublicKey) (a Address) {
	sum := Hash(key.SerializeUncompressed()[1:])
	copy(a[:], sum[12:])
	return a
}

// Key is a private key.
type Key struct{ k *secp256k1.PrivateKey }

// ParseKey reads a private key of 32 bytes in hexadecimal, with or without 0x.
// The error does not show it.
func ParseKey(s string) (Key, error) {
	if len(s) == 64 {
		s = "0x" + s
	}
	b, err := Bytes(s, 32)
	if err != nil {
		return Key{}, fmt.Errorf("a private key must be 64 hexadecimal digits")
	}
	var n secp256k1.ModNScalar
	if n.SetByteSlice(b) || n.IsZero() {
		return Key{}, fmt.Errorf("the private key is out of range")
	}
	return Key{secp256k1.NewPrivateKey(&n)}, nil
}

// Address is the account that the key controls.
func (k Key) Address() Address { return addressOf(k.k.PubKey()) }

// Sign signs a digest, in the form that Signer takes.
func (k Key) Sign(digest [32]byte) (s Signature) {
	compact := ecdsa.SignCompact(k.k, digest[:], false) // v first; s is low
	copy(s[:], compact[1:])
	s[64] = compact[0]
	return s
}
