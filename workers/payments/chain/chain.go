// Package chain settles payments on an EVM chain: it sends the payer's
// authorization to the token's contract in a transaction of its own, through a
// JSON-RPC node, and believes it when enough blocks stand above it.
//
// What was signed is stored before it is sent. So after a crash the same
// transaction is sent again, not another; and should another ever reach the
// chain, the token takes a nonce once.
package chain

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/payments/evm"
	"sluice.dev/sluice/workers/payments/payment"
)

// Config says through which node, and for whose gas.
type Config struct {
	URL    string           // of the node; it may hold a secret, so it is never logged
	Client *outbound.Client // the guarded client
	Key    evm.Key          // of the account that pays for gas
	DB     postgres.DB
	// Confirmations is how many blocks must hold and follow a transaction before
	// it counts: 1 is the block that it is in. 0: 3.
	Confirmations uint64
	// MaxGas is the most gas that a transaction may take; one that needs more is
	// refused. 0: 300,000, several times what a transfer of a usual token takes.
	MaxGas uint64
	// MaxFee is the most wei that a unit of gas may cost, tip included; while the
	// chain asks more, nothing is sent. 0: 50 gwei.
	MaxFee uint64
	// Poll is how often the node is asked. 0: half a second.
	Poll time.Duration
}

// Chain is a payment.Settler.
type Chain struct {
	config Config
	node   node
}

var _ payment.Settler = (*Chain)(nil)

// New returns a Chain.
func New(c Config) *Chain {
	if c.Confirmations == 0 {
		c.Confirmations = 3
	}
	if c.MaxGas == 0 {
		c.MaxGas = 300_000
	}
	if c.MaxFee == 0 {
		c.MaxFee = 50e9
	}
	if c.Poll == 0 {
		c.Poll = 500 * time.Millisecond
	}
	return &Chain{c, node{c.URL, c.Client}}
}

// Open reports that gas costs.
func (*Chain) Open() bool { return false }

// Check asks the token whether the payer has the amount, and the nonce is free.
func (c *Chain) Check(ctx context.Context, p payment.Payment) error {
	t, err := p.Transfer()
	if err != nil {
		return err
	}
	if err := c.onChain(ctx, p); err != nil {
		return err
	}
	has, err := c.node.ask(ctx, p.Domain.Token, evm.BalanceCall(t.From))
	if err != nil {
		return err
	}
	if has.Cmp(t.Value) < 0 {
		return payment.Refuse(x402.NoFunds)
	}
	used, err := c.node.ask(ctx, p.Domain.Token, t.StateCall())
	if err == nil && used.Sign() != 0 {
		err = payment.Refuse(x402.NonceUsed)
	}
	return err
}

// onChain fails when the node is of another chain than the payment.
func (c *Chain) onChain(ctx context.Context, p payment.Payment) error {
	id, err := c.node.number(ctx, "eth_chainId")
	if err == nil && (!id.IsUint64() || id.Uint64() != p.Domain.Chain) {
		err = fmt.Errorf("the node is of chain %v, the payment of %d", id, p.Domain.Chain)
	}
	return err
}

// Settle sends the payment's transaction and waits until it is settled for
// good, or ctx ends.
func (c *Chain) Settle(ctx context.Context, p payment.Payment, _ bool) (string, error) {
	t, err := p.Transfer()
	if err != nil {
		return "", err
	}
	for {
		hash, done, err := c.step(ctx, p, t)
		if done && err == nil {
			err = c.forget(ctx, p.ID)
		}
		if _, refused := errors.AsType[*payment.Refusal](err); refused {
			err = errors.Join(err, c.forget(context.WithoutCancel(ctx), p.ID))
		}
		if done || err != nil {
			return hash, err
		}
		timer := time.NewTimer(c.config.Poll)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return "", fmt.Errorf("settlement of %s: %w", p.ID, ctx.Err())
		}
	}
}

// step does what is to be done next. done says that the money has moved, by the
// transaction hash; a *payment.Refusal, that it has not and will not.
func (c *Chain) step(ctx context.Context, p payment.Payment, t evm.Transfer) (hash string, done bool, err error) {
	sent, err := c.stored(ctx, p.ID)
	if err != nil {
		return "", false, err
	}
	used, err := c.node.ask(ctx, p.Domain.Token, t.StateCall())
	if err != nil {
		return "", false, err
	}
	if used.Sign() != 0 {
		return c.used(ctx, p, t, sent)
	}
	if sent == nil {
		return "", false, c.send(ctx, p, t)
	}
	return "", false, c.follow(ctx, p, sent)
}

// follow looks after a transaction that was sent, while the nonce is unused: it
// is not in a block, or in one that failed or was dropped since.
func (c *Chain) follow(ctx context.Context, p payment.Payment, sent *transaction) error {
	r, err := c.node.receipt(ctx, sent.Hash)
	if err != nil {
		return err
	}
	if r != nil {
		settled, err := c.confirmed(ctx, sent.Hash, r)
		if err == nil && settled && r.Status.Sign() == 0 {
			err = payment.Refuse(x402.SettleFailed) // the contract refused it, for good
		}
		return err
	}
	count, err := c.node.number(ctx, "eth_getTransactionCount", c.config.Key.Address().String(), "latest")
	if err != nil {
		return err
	}
	if count.Cmp(big.NewInt(sent.AccountNonce)) > 0 { // another transaction took its place: it can never be in a block
		return c.forget(ctx, p.ID)
	}
	return c.broadcast(ctx, sent)
}

// broadcast sends a stored transaction, perhaps again. What the node says
// against it does not count: whether it is in the chain does.
func (c *Chain) broadcast(ctx context.Context, sent *transaction) error {
	var hash string
	err := c.node.call(ctx, &hash, "eth_sendRawTransaction", hexOf(sent.Raw))
	if _, heard := errors.AsType[*failure](err); heard {
		return nil
	}
	return err
}

// used is called when the nonce is used: by our transaction or by anybody's,
// since whoever sees the payer's signature may send it. It looks for the
// transfer that the payer signed; a nonce that was used for anything else, or
// cancelled, pays nothing.
func (c *Chain) used(ctx context.Context, p payment.Payment, t evm.Transfer, sent *transaction) (hash string, done bool, err error) {
	if sent != nil {
		r, err := c.node.receipt(ctx, sent.Hash)
		if err != nil || r == nil { // nil: a block was dropped just now, or ours will fail behind another
			return "", false, err
		}
		settled, err := c.confirmed(ctx, sent.Hash, r)
		if err != nil || !settled || pays(r, p, t) {
			return sent.Hash, settled, err
		}
	}
	hash, err = c.search(ctx, p, t)
	if err != nil {
		return "", false, err
	}
	r, err := c.node.receipt(ctx, hash)
	if err != nil || r == nil { // nil: a block was dropped just now
		return "", false, err
	}
	settled, err := c.confirmed(ctx, hash, r)
	if err != nil || !settled {
		return "", false, err
	}
	if r.Status.Sign() == 0 || !pays(r, p, t) {
		return "", false, payment.Refuse(x402.BadState)
	}
	return hash, true, nil
}

// searched is how many blocks are looked through for a nonce: it was free when
// the payment was claimed, minutes ago, and nodes refuse to look through many.
const searched = 5000

// search returns the transaction that used the nonce of t. It fails with a
// *payment.Refusal when there is none: the payer has cancelled it.
func (c *Chain) search(ctx context.Context, p payment.Payment, t evm.Transfer) (hash string, err error) {
	head, err := c.node.number(ctx, "eth_blockNumber")
	if err != nil {
		return "", err
	}
	first := new(big.Int).Sub(head, big.NewInt(min(searched, head.Int64())))
	var logs []event
	from, nonce := t.From.Word(), t.Nonce
	err = c.node.call(ctx, &logs, "eth_getLogs", map[string]any{
		"fromBlock": "0x" + first.Text(16), "toBlock": "latest", "address": p.Domain.Token.String(),
		"topics": []string{hexOf(evm.AuthorizedEvent[:]), hexOf(from[:]), hexOf(nonce[:])},
	})
	if err == nil && len(logs) == 0 {
		err = payment.Refuse(x402.BadState)
	}
	if err != nil {
		return "", err
	}
	return logs[len(logs)-1].Hash, nil
}

// confirmed reports whether enough blocks hold and follow a receipt's, and the
// receipt is still in that block.
func (c *Chain) confirmed(ctx context.Context, hash string, r *receipt) (bool, error) {
	head, err := c.node.number(ctx, "eth_blockNumber")
	if err != nil {
		return false, err
	}
	above := new(big.Int).Sub(head, &r.Block.Int)
	if above.Cmp(new(big.Int).SetUint64(c.config.Confirmations-1)) < 0 {
		return false, nil
	}
	now, err := c.node.receipt(ctx, hash)
	return err == nil && now != nil && now.BlockHash == r.BlockHash, err
}

// pays reports whether a receipt has the transfer of t in it, by its token.
func pays(r *receipt, p payment.Payment, t evm.Transfer) bool {
	from, to := t.From.Word(), t.To.Word()
	want := [3]string{hexOf(evm.TransferEvent[:]), hexOf(from[:]), hexOf(to[:])}
	for _, l := range r.Logs {
		token, err := evm.ParseAddress(l.Address)
		if err != nil || token != p.Domain.Token || len(l.Topics) != 3 || [3]string(l.Topics) != want {
			continue
		}
		data, err := evm.Bytes(l.Data, 32)
		if err == nil && new(big.Int).SetBytes(data).Cmp(t.Value) == 0 {
			return true
		}
	}
	return false
}
