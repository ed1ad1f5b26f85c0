//go:build clients

package e2e

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
)

// evmChain is a chain in a process of its own, with a token that has EIP-3009.
type evmChain struct {
	URL, Token string
}

// newEVM starts a chain on which payer has funds of the token, and gas the means
// to pay for transactions.
func newEVM(t *testing.T, payer, gas wallet, funds string) (c evmChain) {
	t.Helper()
	cmd := exec.Command("node", "main.js")
	cmd.Dir = installed(t, "x402-chain", "package-lock.json", npmInstall)
	cmd.Env = append(os.Environ(), "HARDHAT_DISABLE_TELEMETRY_PROMPT=true", "PAYER="+payer.address, "GAS="+gas.address, "FUNDS="+funds)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	if err := json.NewDecoder(out).Decode(&c); err != nil {
		t.Fatalf("the chain did not start: %v", err)
	}
	return c
}

// balance asks the token what an address has, as 0x and 64 digits.
func (c evmChain) balance(t *testing.T, address string) string {
	t.Helper()
	data := hexOf(append(keccak([]byte("balanceOf(address)"))[:4], hexWord(t, address)...))
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "eth_call",
		"params": []any{map[string]string{"to": c.Token, "data": data}, "latest"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.Post(c.URL, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var answer struct{ Result string }
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.Result
}

// A payment is settled by a transaction on a chain: the money moves there once,
// and what nobody has there does not buy anything.
func TestX402ClientsPayOnAChain(t *testing.T) {
	payer, gas := newWallet(t), newWallet(t)
	chain := newEVM(t, payer, gas, "25000")
	s := own(t, map[string]string{"SLUICE_X402_SETTLEMENT": "rpc", "SLUICE_X402_RPC_URL": chain.URL, "SLUICE_X402_CONFIRMATIONS": "2",
		"SLUICE_X402_SIGNER_KEY": hex.EncodeToString(gas.key.Serialize()), "SLUICE_WEBHOOK_ALLOW_CIDRS": "127.0.0.0/8"})
	_, quote := s.offerV2(t, map[string]any{"asset": chain.Token, "token_name": "USDC", "token_version": "2"})
	offer := quote.Accepts[0]

	payment := payer.payFor(t, offer)
	r := call(t, http.MethodPost, s.url("/v1/clips"), "", clipOrder, "X-PAYMENT", payment)
	wantStatus(t, r, http.StatusCreated)
	if p := receiptOf(t, r); !p.Success || p.Payer != payer.address || len(p.Transaction) != 66 {
		t.Errorf("%+v", p)
	}
	for name, header := range map[string]string{"nonce_already_used": payment, "insufficient_funds": gas.payFor(t, offer)} {
		r := call(t, http.MethodPost, s.url("/v1/clips"), "", clipOrder, "X-PAYMENT", header)
		if q := into[quoted](t, r); r.StatusCode != http.StatusPaymentRequired || !bytes.Contains([]byte(q.Error), []byte(name)) {
			t.Errorf("%d %s, want %s", r.StatusCode, q.Error, name)
		}
	}
	for address, want := range map[string]int{payer.address: 15_000, offer.PayTo: 10_000} {
		if got := chain.balance(t, address); got != fmt.Sprintf("0x%064x", want) {
			t.Errorf("%s has %s, want %d", address, got, want)
		}
	}
}
