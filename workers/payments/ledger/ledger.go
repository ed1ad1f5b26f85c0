// Package ledger settles payments in a ledger of its own in Postgres: for
// development and tests, where no money moves. Payers are given funds by an
// operator.
package ledger

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/payments/evm"
	"sluice.dev/sluice/workers/payments/payment"
)

// Ledger is a payment.Ledger.
type Ledger struct{ DB postgres.DB }

var _ payment.Ledger = Ledger{}

// Account names an account of the ledger: an address with its amount of one token.
type Account struct {
	Chain   uint64
	Asset   string // in small letters
	Address string // in small letters
}

// Balance is what an account has, in the token's smallest units.
type Balance struct {
	Amount   int64 // funds, less what was paid
	Held     int64 // of Amount, for payments under way
	Received int64 // by settled payments; it cannot be spent
}

// MaxFund bounds one amount.
const MaxFund = 1<<61 - 1

// Fund adds an amount, at most MaxFund, to an account. It fails with invalid_request when the
// account would have more than fits.
func (l Ledger) Fund(ctx context.Context, a Account, amount int64) error {
	_, err := l.DB.Exec(ctx, `
		INSERT INTO x402_balances (chain, asset, address, amount) VALUES ($1, $2, $3, $4)
		ON CONFLICT ON CONSTRAINT x402_balances_pkey DO UPDATE SET amount = x402_balances.amount + excluded.amount`, a.Chain, a.Asset, a.Address, amount)
	if postgres.Constraint(err) == "x402_balances_bounded" {
		return apierror.Invalid([]decision.Detail{{Field: "amount", Issue: "is more than the account can hold", Expected: "a sum below 2^62"}})
	}
	if err != nil {
		return fmt.Errorf("fund %s: %w", a.Address, err)
	}
	return nil
}

// Balance returns what an account has; one that was never funded has nothing.
func (l Ledger) Balance(ctx context.Context, a Account) (b Balance, err error) {
	err = l.DB.QueryRow(ctx, `
		SELECT coalesce(sum(amount), 0)::bigint, coalesce(sum(held), 0)::bigint,
			(SELECT coalesce(sum(amount), 0)::bigint FROM x402_payments WHERE pay_to = $3 AND chain = $1 AND asset = $2 AND state = 'settled')
		FROM x402_balances WHERE chain = $1 AND asset = $2 AND address = $3`, a.Chain, a.Asset, a.Address).Scan(&b.Amount, &b.Held, &b.Received)
	if err != nil {
		err = fmt.Errorf("balance of %s: %w", a.Address, err)
	}
	return b, err
}

// Open reports that nothing costs anything here.
func (Ledger) Open() bool { return true }

// Check fails when the payer has too little.
func (l Ledger) Check(ctx context.Context, p payment.Payment) error {
	a := account(p)
	b, err := l.Balance(ctx, a)
	if err == nil && b.Amount-b.Held < amount(p) {
		err = payment.Refuse(x402.NoFunds)
	}
	return err
}

// Hold sets the amount aside.
func (Ledger) Hold(ctx context.Context, tx pgx.Tx, p payment.Payment) error {
	a := account(p)
	tag, err := tx.Exec(ctx, `UPDATE x402_balances SET held = held + $4 WHERE chain = $1 AND asset = $2 AND address = $3 AND amount - held >= $4`,
		a.Chain, a.Asset, a.Address, amount(p))
	if err != nil {
		return fmt.Errorf("hold funds: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return payment.Refuse(x402.NoFunds)
	}
	return nil
}

// Release gives back what was set aside.
func (Ledger) Release(ctx context.Context, tx pgx.Tx, p payment.Payment) error {
	return change(ctx, tx, p, `UPDATE x402_balances SET held = held - $4 WHERE chain = $1 AND asset = $2 AND address = $3`)
}

// Capture pays out what was set aside. The transaction is made of the payment's id.
func (Ledger) Capture(ctx context.Context, tx pgx.Tx, p payment.Payment) (string, error) {
	return transaction(p), change(ctx, tx, p, `UPDATE x402_balances SET held = held - $4, amount = amount - $4 WHERE chain = $1 AND asset = $2 AND address = $3`)
}

func change(ctx context.Context, tx pgx.Tx, p payment.Payment, sql string) error {
	a := account(p)
	tag, err := tx.Exec(ctx, sql, a.Chain, a.Asset, a.Address, amount(p))
	if err == nil && tag.RowsAffected() != 1 {
		err = errors.New("the payer has no account")
	}
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// Settle is not used: the service calls Capture.
func (Ledger) Settle(context.Context, payment.Payment, bool) (string, error) {
	return "", errors.New("a ledger settles in the payments service's transaction")
}

// transaction has the form of a hash on a chain, which public clients expect.
func transaction(p payment.Payment) string {
	sum := evm.Hash([]byte("sluice ledger"), []byte(p.ID))
	return "0x" + hex.EncodeToString(sum[:])
}

func account(p payment.Payment) Account {
	return Account{Chain: p.Domain.Chain, Asset: p.Domain.Token.String(), Address: p.From}
}

func amount(p payment.Payment) int64 { return int64(p.Requirement.Amount) }
