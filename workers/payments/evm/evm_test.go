package evm_test

import (
	"encoding/hex"
	"math/big"
	"testing"

	"sluice.dev/sluice/workers/payments/evm"
)

func address(t testing.TB, s string) evm.Address {
	t.Helper()
	a, err := evm.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func key(t testing.TB) evm.Key {
	t.Helper()
	k, err := evm.ParseKey("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestHashOfNothing(t *testing.T) {
	t.Parallel()
	sum := evm.Hash()
	if got := hex.EncodeToString(sum[:]); got != "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470" {
		t.Error(got)
	}
}

// The first account of common test chains.
func TestAddressOfAKnownKey(t *testing.T) {
	t.Parallel()
	if got := key(t).Address().String(); got != "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" {
		t.Error(got)
	}
}

func TestDomainSeparators(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]evm.Domain{
		"71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818": {"USDC", "2", 84532, address(t, "0x036CbD53842c5426634e7929541eC2318f3dCF7e")},
		"02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f": {"USD Coin", "2", 8453, address(t, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")},
	} {
		sum := d.Separator()
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s: %s", d.Name, got)
		}
	}
}

func transfer(t testing.TB) (evm.Transfer, evm.Domain) {
	t.Helper()
	token := address(t, "0x036CbD53842c5426634e7929541eC2318f3dCF7e")
	return evm.Transfer{From: key(t).Address(), To: token, Value: big.NewInt(10000), ValidAfter: new(big.Int), ValidBefore: big.NewInt(2000), Nonce: [32]byte{7}},
		evm.Domain{Name: "USDC", Version: "2", Chain: 84532, Token: token}
}

func TestSignerOfATransfer(t *testing.T) {
	t.Parallel()
	tr, d := transfer(t)
	digest := tr.Digest(d)
	sig := key(t).Sign(digest)
	if a, ok := sig.Signer(digest); !ok || a != tr.From {
		t.Fatal(a, ok)
	}
	tr.Value = big.NewInt(10001)
	if a, ok := sig.Signer(tr.Digest(d)); ok && a == tr.From {
		t.Error("good for another amount")
	}
	d.Chain++
	if a, ok := sig.Signer(digest); !ok || a != tr.From {
		t.Error("the digest holds the chain, not the signature")
	}
}

// Each signature has one spelling.
func TestOtherSpellingsOfASignature(t *testing.T) {
	t.Parallel()
	tr, d := transfer(t)
	digest := tr.Digest(d)
	good := key(t).Sign(digest)
	order, _ := new(big.Int).SetString("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16)
	high := good
	new(big.Int).Sub(order, new(big.Int).SetBytes(good[32:64])).FillBytes(high[32:64])
	high[64] = 27 + 28 - good[64]
	change := func(f func(*evm.Signature)) evm.Signature { s := good; f(&s); return s }
	for name, s := range map[string]evm.Signature{
		"high s":        high,
		"v of 0 or 1":   change(func(s *evm.Signature) { s[64] -= 27 }),
		"v of 31 or 32": change(func(s *evm.Signature) { s[64] += 4 }),
		"v of 29":       change(func(s *evm.Signature) { s[64] = 29 }),
		"r of zero":     change(func(s *evm.Signature) { clear(s[:32]) }),
		"s of zero":     change(func(s *evm.Signature) { clear(s[32:64]) }),
		"r too large":   change(func(s *evm.Signature) { order.FillBytes(s[:32]) }),
		"s too large":   change(func(s *evm.Signature) { order.FillBytes(s[32:64]) }),
		"nothing":       {},
	} {
		if a, ok := s.Signer(digest); ok {
			t.Errorf("%s: taken as %s", name, a)
		}
	}
	if a, ok := change(func(s *evm.Signature) { s[64] = 27 + 28 - s[64] }).Signer(digest); ok && a == tr.From {
		t.Error("the other v gives the same signer")
	}
}

func TestKeysThatAreNone(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "0x", "zz", "0x" + string(make([]byte, 64)), "0000000000000000000000000000000000000000000000000000000000000000",
		"fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"} {
		if _, err := evm.ParseKey(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}
