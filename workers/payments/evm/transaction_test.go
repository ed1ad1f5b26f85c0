package evm_test

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"testing"

	"sluice.dev/sluice/workers/payments/evm"
)

// The hash is that of another implementation, for the same key and fields.
func TestSignedTransaction(t *testing.T) {
	t.Parallel()
	data := append([]byte{0xe3, 0xee, 0x16, 0x0e}, bytes.Repeat([]byte{0xab}, 288)...)
	_, hash := evm.Transaction{
		Chain: 84532, Nonce: 7, Gas: 100_000, Tip: big.NewInt(1e9), MaxFee: big.NewInt(2e9), Data: data,
		To: address(t, "0x036CbD53842c5426634e7929541eC2318f3dCF7e"),
	}.Sign(key(t))
	if got := hex.EncodeToString(hash[:]); got != "4a397f4bfa8b4fda09673ebb0948d8cf7a2b5c195a661b940d28754bed9279db" {
		t.Error(got)
	}
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	tr, _ := transfer(t)
	for want, call := range map[string][]byte{"e3ee160e": tr.Call(evm.Signature{}), "e94a0102": tr.StateCall(), "70a08231": evm.BalanceCall(tr.From)} {
		if got := hex.EncodeToString(call[:4]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
