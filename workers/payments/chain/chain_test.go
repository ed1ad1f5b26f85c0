package chain_test

import (
	"context"
	"encoding/hex"
	"errors"
	"math/big"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/workers/payments/chain"
	"sluice.dev/sluice/workers/payments/evm"
	"sluice.dev/sluice/workers/payments/payment"
)

var (
	payer  = must(evm.ParseKey("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"))
	gas    = must(evm.ParseKey("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"))
	shop   = must(evm.ParseAddress("0x209693bc6afc0c5328ba36faf03c514ef312287c"))
	domain = evm.Domain{Name: "USDC", Version: "2", Chain: 84532, Token: must(evm.ParseAddress("0x036cbd53842c5426634e7929541ec2318f3dcf7e"))}
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// testbed is a settler with a node, and payments in a database.
type testbed struct {
	t    *testing.T
	node *fakeNode
	pool *pgxpool.Pool
}

func newTestbed(t *testing.T) *testbed {
	t.Helper()
	b := &testbed{t, newNode(t), pgtest.Pool(t)}
	b.node.balances[payer.Address()] = big.NewInt(50_000)
	return b
}

// settler is one process.
func (b *testbed) settler() *chain.Chain {
	client := outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	return chain.New(chain.Config{URL: b.node.URL, Client: client, Key: gas, DB: b.pool, Confirmations: 2, Poll: time.Millisecond})
}

// payment is one that has been claimed, with a nonce of its own.
func (b *testbed) payment(nonce byte) payment.Payment {
	b.t.Helper()
	p := payment.Payment{ID: "xpay_" + string('a'+rune(nonce)), Network: "base-sepolia", Domain: domain,
		Requirement: x402.Requirement{Amount: 10_000},
		Payment: x402.Payment{From: payer.Address().String(), To: shop.String(), Value: "10000", ValidAfter: "0", ValidBefore: "99999999999",
			Nonce: "0x" + hex.EncodeToString(append(make([]byte, 31), nonce))}}
	tr := must(p.Transfer())
	sig := payer.Sign(tr.Digest(domain))
	p.Signature = "0x" + hex.EncodeToString(sig[:])
	_, err := b.pool.Exec(b.t.Context(), `INSERT INTO x402_payments
		(id, network, chain, asset, payer, nonce, pay_to, amount, resource, route, account, request_id, authorization_json, state)
		VALUES ($1, '', 84532, '', '', $2, '', 10000, '', '', '', '', '{}', 'settling')`, p.ID, p.Nonce)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// settle settles p while blocks are mined; it returns the transaction.
func (b *testbed) settle(p payment.Payment, again bool) (string, error) {
	b.t.Helper()
	b.node.mu.Lock()
	b.node.auto = true
	b.node.mu.Unlock()
	return b.settler().Settle(b.t.Context(), p, again)
}

// paid is how many payments have reached the shop.
func (b *testbed) paid() int64 {
	b.node.mu.Lock()
	defer b.node.mu.Unlock()
	return b.node.balance(shop).Int64() / 10_000
}

func (b *testbed) wantPaid(n int64) {
	b.t.Helper()
	if got := b.paid(); got != n {
		b.t.Errorf("%d payments reached the shop, want %d", got, n)
	}
}

func refused(t *testing.T, err error, want x402.Reason) {
	t.Helper()
	if r, ok := errors.AsType[*payment.Refusal](err); !ok || r.Reason != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestPaymentIsSettledOnTheChain(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	p := b.payment(1)
	if err := b.settler().Check(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	hash, err := b.settle(p, false)
	if err != nil || len(hash) != 66 {
		t.Fatal(hash, err)
	}
	b.wantPaid(1)
	again, err := b.settle(p, true)
	if err != nil || again != hash {
		t.Errorf("%s %v, want %s", again, err, hash)
	}
	b.wantPaid(1)
	refused(t, b.settler().Check(t.Context(), p), x402.NonceUsed)
}

// A transaction takes no more gas, and pays no more for it, than is configured,
// whatever the contract and the chain ask.
func TestGasIsBounded(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	set := func(gas, fee string) {
		b.node.mu.Lock()
		defer b.node.mu.Unlock()
		b.node.gas, b.node.fee = gas, fee
	}
	p := b.payment(1)
	set("0x493e1", "") // one more than 300,000
	_, err := b.settle(p, false)
	refused(t, err, x402.SettleFailed)
	set("0x1ffffffffffffffff", "") // more than a number of 64 bits
	_, err = b.settle(p, false)
	refused(t, err, x402.SettleFailed)
	set("", "0xba43b7401") // 50 gwei and a wei
	if _, err = b.settle(p, false); err == nil {
		t.Error("settled for any fee")
	} else if _, final := errors.AsType[*payment.Refusal](err); final {
		t.Errorf("the fee may fall again: %v", err)
	}
	if n := b.node.calls["eth_sendRawTransaction"]; n != 0 {
		t.Errorf("%d transactions were sent", n)
	}
	set("0x493e0", "0xba43b7400") // what is allowed
	if _, err = b.settle(p, true); err != nil {
		t.Fatal(err)
	}
	b.wantPaid(1)
	if tx := b.node.last; tx.gas != 300_000 || tx.fee != 50e9 || tx.tip > tx.fee {
		t.Errorf("%d gas for %d, tip %d", tx.gas, tx.fee, tx.tip)
	}
}

func TestManyPaymentsAtOnce(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	var group sync.WaitGroup
	for i := range byte(5) {
		p := b.payment(i)
		group.Go(func() {
			for {
				if hash, err := b.settle(p, true); err == nil && hash != "" {
					return
				} else if t.Context().Err() != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.wantPaid(5)
}

// A process that dies at any point leaves what the next one needs: whatever the
// call after which nothing more was heard, money moves once.
func TestProcessThatDies(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"eth_call", "eth_estimateGas", "eth_maxPriorityFeePerGas", "eth_getTransactionCount", "eth_sendRawTransaction", "eth_getTransactionReceipt", "eth_blockNumber"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			b := newTestbed(t)
			p := b.payment(1)
			b.node.broken[method] = 1
			if hash, err := b.settle(p, false); err == nil {
				t.Fatalf("settled by %s although %s was cut off", hash, method)
			}
			if hash, err := b.settle(p, true); err != nil || hash == "" {
				t.Fatal(hash, err)
			}
			b.wantPaid(1)
		})
	}
}

// A block that is dropped takes a transaction back: it is not believed before
// enough blocks stand above it, and sent again.
func TestReorganisation(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	p := b.payment(1)
	ctx, cancel := context.WithCancel(t.Context())
	b.node.onSend = func() { b.node.onSend = nil; b.node.mineLocked(); cancel() }
	if hash, err := b.settler().Settle(ctx, p, false); err == nil {
		t.Fatalf("settled by %s with one block", hash)
	}
	b.wantPaid(1)
	b.node.drop(t, gas.Address())
	b.wantPaid(0)
	if hash, err := b.settle(p, true); err != nil || hash == "" {
		t.Fatal(hash, err)
	}
	b.wantPaid(1)
}

// Whoever sees the payer's signature may send it first. The shop is paid all
// the same.
func TestSomebodyElseSendsThePayment(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	p := b.payment(1)
	tr := must(p.Transfer())
	raw, hash := evm.Transaction{Chain: 84532, Gas: 100_000, Tip: new(big.Int), MaxFee: big.NewInt(1), To: domain.Token,
		Data: tr.Call(evm.Signature(must(evm.Bytes(p.Signature, 65))))}.Sign(payer)
	b.node.mu.Lock()
	_, err := b.node.take(raw)
	b.node.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	b.node.mine()
	got, err := b.settle(p, false)
	if err != nil || got != "0x"+hex.EncodeToString(hash[:]) {
		t.Errorf("%s %v", got, err)
	}
	b.wantPaid(1)
}

// A payer who cancels, or spends the nonce on a payment to somebody else, has
// not paid.
func TestPayerUsesTheNonceOtherwise(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	p := b.payment(1)
	tr := must(p.Transfer())
	b.node.mu.Lock()
	b.node.used[tokenCall{Transfer: tr}.key()] = true
	b.node.mu.Unlock()
	_, err := b.settle(p, false)
	refused(t, err, x402.BadState)

	q := b.payment(2)
	other := must(q.Transfer())
	other.To = gas.Address()
	raw, _ := evm.Transaction{Chain: 84532, Gas: 100_000, Tip: new(big.Int), MaxFee: big.NewInt(1), To: domain.Token, Data: other.Call(payer.Sign(other.Digest(domain)))}.Sign(payer)
	b.node.mu.Lock()
	_, err = b.node.take(raw)
	b.node.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	b.node.mine()
	_, err = b.settle(q, false)
	refused(t, err, x402.BadState)
	b.wantPaid(0)
}

func TestPayerWithoutFunds(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	p := b.payment(1)
	b.node.balances[payer.Address()] = big.NewInt(9_999)
	refused(t, b.settler().Check(t.Context(), p), x402.NoFunds)
	_, err := b.settle(p, false)
	refused(t, err, x402.SettleFailed)
	if n := b.node.calls["eth_sendRawTransaction"]; n != 0 {
		t.Errorf("gas was spent on %d transactions", n)
	}
}

func TestNodeOfAnotherChain(t *testing.T) {
	t.Parallel()
	b := newTestbed(t)
	b.node.chain = 8453
	err := b.settler().Check(t.Context(), b.payment(1))
	if _, ok := errors.AsType[*payment.Refusal](err); err == nil || ok {
		t.Error(err)
	}
}
