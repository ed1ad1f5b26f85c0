package chain

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/payments/evm"
	"sluice.dev/sluice/workers/payments/payment"
)

// transaction is one that was signed for a payment.
type transaction struct {
	Hash         string
	Raw          []byte
	AccountNonce int64
}

// stored returns the transaction that was signed for a payment; nil: none.
func (c *Chain) stored(ctx context.Context, id string) (*transaction, error) {
	rows, err := c.config.DB.Query(ctx, `SELECT hash, raw, account_nonce FROM x402_transactions WHERE payment_id = $1`, id)
	if err != nil {
		return nil, fmt.Errorf("look for the transaction of %s: %w", id, err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByPos[transaction])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // none is no error
	}
	if err != nil {
		err = fmt.Errorf("look for the transaction of %s: %w", id, err)
	}
	return t, err
}

// forget removes the transaction of a payment that has ended, or that can never
// be in the chain.
func (c *Chain) forget(ctx context.Context, id string) error {
	if _, err := c.config.DB.Exec(ctx, `DELETE FROM x402_transactions WHERE payment_id = $1`, id); err != nil {
		return fmt.Errorf("forget the transaction of %s: %w", id, err)
	}
	return nil
}

// send signs a transaction for a payment, stores it, and sends it.
func (c *Chain) send(ctx context.Context, p payment.Payment, t evm.Transfer) error {
	sig, err := evm.Bytes(p.Signature, len(evm.Signature{}))
	if err != nil {
		return err
	}
	tx := evm.Transaction{Chain: p.Domain.Chain, To: p.Domain.Token, Data: t.Call(evm.Signature(sig))}
	if err := c.price(ctx, &tx); err != nil {
		return err
	}
	sent, err := c.store(ctx, p.ID, tx)
	if err != nil {
		return err
	}
	return c.broadcast(ctx, sent)
}

// price asks what the transaction will cost. The contract is asked whether it
// would refuse it: gas for nothing is saved then. One that takes more gas than
// MaxGas is refused; one that costs more than MaxFee now may cost less later.
func (c *Chain) price(ctx context.Context, tx *evm.Transaction) error {
	gas, err := c.node.number(ctx, "eth_estimateGas", message(c.config.Key.Address(), tx.To, tx.Data))
	if f, ok := errors.AsType[*failure](err); ok && f.reverted() {
		return &payment.Refusal{Reason: x402.SettleFailed, Cause: err}
	}
	if err != nil {
		return err
	}
	if !gas.IsUint64() || gas.Uint64() > c.config.MaxGas {
		return &payment.Refusal{Reason: x402.SettleFailed, Cause: fmt.Errorf("it takes %v gas, more than %d", gas, c.config.MaxGas)}
	}
	tx.Gas = min(gas.Uint64()+gas.Uint64()/4, c.config.MaxGas)
	if tx.Tip, err = c.node.number(ctx, "eth_maxPriorityFeePerGas"); err != nil {
		return err
	}
	now, err := c.node.number(ctx, "eth_gasPrice")
	if err != nil {
		return err
	}
	most := new(big.Int).SetUint64(c.config.MaxFee)
	if now.Cmp(most) > 0 {
		return fmt.Errorf("gas costs %v wei, more than %v", now, most)
	}
	if tx.MaxFee = now.Lsh(now, 1).Add(now, tx.Tip); tx.MaxFee.Cmp(most) > 0 { // good for six full blocks
		tx.MaxFee = most
	}
	if tx.Tip.Cmp(tx.MaxFee) > 0 {
		tx.Tip = tx.MaxFee
	}
	return nil
}

// store gives tx the next nonce of our account, signs and stores it. One at a
// time gets a nonce, over all replicas.
func (c *Chain) store(ctx context.Context, id string, tx evm.Transaction) (sent *transaction, err error) {
	account := c.config.Key.Address().String()
	pending, err := c.node.number(ctx, "eth_getTransactionCount", account, "pending")
	if err != nil {
		return nil, err
	}
	err = postgres.InTx(ctx, c.config.DB, func(db pgx.Tx) error {
		if _, err := db.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('x402 signer ' || $1, 0))`, account); err != nil {
			return err
		}
		var next int64
		err := db.QueryRow(ctx, `SELECT coalesce(max(account_nonce) + 1, 0) FROM x402_transactions WHERE signer = $1 AND chain = $2`, account, tx.Chain).Scan(&next)
		if err != nil {
			return err
		}
		tx.Nonce = max(uint64(next), pending.Uint64())
		raw, hash := tx.Sign(c.config.Key)
		sent = &transaction{hexOf(hash[:]), raw, int64(tx.Nonce)}
		_, err = db.Exec(ctx, `INSERT INTO x402_transactions (payment_id, chain, signer, account_nonce, hash, raw) VALUES ($1, $2, $3, $4, $5, $6)`,
			id, tx.Chain, account, sent.AccountNonce, sent.Hash, sent.Raw)
		return err
	})
	if err != nil {
		err = fmt.Errorf("store the transaction of %s: %w", id, err)
	}
	return sent, err
}
