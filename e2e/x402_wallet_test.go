package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"golang.org/x/crypto/sha3"
)

// wallet signs payments as clients do, on base-sepolia.
type wallet struct {
	key     *secp256k1.PrivateKey
	address string
}

func newWallet(t testing.TB) wallet {
	t.Helper()
	key, err := secp256k1.GeneratePrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	return wallet{key, hexOf(keccak(key.PubKey().SerializeUncompressed()[1:])[12:])}
}

// funded is a wallet that the ledger of s knows.
func (s *stack) funded(t testing.TB, amount string) wallet {
	t.Helper()
	w := newWallet(t)
	if status, _, stderr := sluice(t, s.env, "x402", "fund", w.address, amount); status != 0 {
		t.Fatal(stderr)
	}
	return w
}

// balance is what the ledger says that an address has: in all, and held.
func (s *stack) balance(t testing.TB, address string) (amount, held string) {
	t.Helper()
	r := call(t, "GET", s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/x402/accounts/"+address, s.dev["SLUICE_ADMIN_KEY"], nil)
	wantStatus(t, r, 200)
	b := into[struct{ Balance, Held string }](t, r)
	return b.Balance, b.Held
}

// authorization is the part of a payment that is signed.
type authorization struct {
	From        string `json:"from"`
	To          string `json:"to"`
	Value       string `json:"value"`
	ValidAfter  string `json:"validAfter"`
	ValidBefore string `json:"validBefore"`
	Nonce       string `json:"nonce"`
}

// payFor makes an X-PAYMENT header for an offer, after change.
func (w wallet) payFor(t testing.TB, offer requirement, changes ...func(*authorization)) string {
	t.Helper()
	var nonce [32]byte
	rand.Read(nonce[:])
	now := time.Now().Unix()
	a := authorization{w.address, offer.PayTo, offer.MaxAmountRequired, strconv.FormatInt(now-600, 10),
		strconv.FormatInt(now+offer.MaxTimeoutSeconds, 10), hexOf(nonce[:])}
	for _, change := range changes {
		change(&a)
	}
	return encodePayment(t, a, w.sign(t, a, offer))
}

// encodePayment is an X-PAYMENT header of version 1.
func encodePayment(t testing.TB, a authorization, signature []byte) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"x402Version": 1, "scheme": "exact", "network": "base-sepolia",
		"payload": map[string]any{"signature": hexOf(signature), "authorization": a}})
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// sign makes r, s and v over the typed data of a transfer (EIP-712, EIP-3009).
func (w wallet) sign(t testing.TB, a authorization, offer requirement) []byte {
	t.Helper()
	domain := keccak(
		keccak([]byte("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")),
		keccak([]byte(offer.Extra["name"].(string))), keccak([]byte(offer.Extra["version"].(string))), number256(t, "84532"), hexWord(t, offer.Asset))
	message := keccak(
		keccak([]byte("TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)")),
		hexWord(t, a.From), hexWord(t, a.To), number256(t, a.Value), number256(t, a.ValidAfter), number256(t, a.ValidBefore), hexWord(t, a.Nonce))
	compact := ecdsa.SignCompact(w.key, keccak([]byte{0x19, 1}, domain, message), false)
	return append(compact[1:], compact[0])
}

// highS gives a signature its other spelling.
func highS(signature []byte) []byte {
	s := new(big.Int).Sub(secp256k1.Params().N, new(big.Int).SetBytes(signature[32:64]))
	other := append([]byte(nil), signature[:32]...)
	other = append(other, s.FillBytes(make([]byte, 32))...)
	return append(other, 27+28-signature[64])
}

func keccak(parts ...[]byte) []byte {
	h := sha3.NewLegacyKeccak256()
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

func hexOf(b []byte) string { return "0x" + hex.EncodeToString(b) }

// hexWord is 0x… in 32 bytes.
func hexWord(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.TrimPrefix(s, "0x"))
	if err != nil {
		t.Fatal(err)
	}
	return append(make([]byte, 32-len(b)), b...)
}

func number256(t testing.TB, s string) []byte {
	t.Helper()
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		t.Fatal(s)
	}
	return n.FillBytes(make([]byte, 32))
}
