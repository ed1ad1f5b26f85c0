package payments

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/payments/evm"
	"sluice.dev/sluice/workers/payments/payment"
)

func newID() string { return "xpay_" + strings.ToLower(rand.Text()[:20]) }

// authorization is what is kept of a payment to settle it after a crash.
type authorization struct {
	Payment     x402.Payment
	Requirement x402.Requirement
}

// insert takes the nonce of p. It fails with a Refusal when it is taken.
func insert(ctx context.Context, tx pgx.Tx, p payment.Payment) error {
	kept, err := json.Marshal(authorization{p.Payment, p.Requirement})
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
		INSERT INTO x402_payments (id, network, chain, asset, payer, nonce, pay_to, amount, resource, route, account, request_id, authorization_json, state)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT ON CONSTRAINT x402_payments_nonce_once DO NOTHING`,
		p.ID, p.Network, p.Domain.Chain, p.Domain.Token.String(), p.From, p.Nonce, p.To, p.Requirement.Amount, p.Requirement.Resource,
		p.Route, p.Account, p.RequestID, kept, p.State)
	if err != nil {
		return fmt.Errorf("take the nonce: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return payment.Refuse(x402.NonceUsed)
	}
	return nil
}

// checkNonce fails with a Refusal when the nonce of p is taken.
func (s *Service) checkNonce(ctx context.Context, p payment.Payment) error {
	var used bool
	err := s.config.DB.QueryRow(ctx, `SELECT EXISTS (SELECT FROM x402_payments WHERE chain = $1 AND asset = $2 AND payer = $3 AND nonce = $4)`,
		p.Domain.Chain, p.Domain.Token.String(), p.From, p.Nonce).Scan(&used)
	if err != nil {
		return fmt.Errorf("look for the nonce: %w", err)
	}
	if used {
		return payment.Refuse(x402.NonceUsed)
	}
	return nil
}

const columns = `id, network, chain, asset, route, account, request_id, authorization_json, state, reason, transaction, created_at, ended_at`

// row is one payment as it is stored.
type row struct {
	ID, Network    string
	Chain          uint64
	Asset          string
	Route, Account string
	RequestID      string
	Kept           []byte
	State          payment.State
	Reason         x402.Reason
	Transaction    string
	CreatedAt      time.Time
	EndedAt        *time.Time
}

func scan(r pgx.CollectableRow) (p payment.Payment, err error) {
	s, err := pgx.RowToStructByPos[row](r)
	if err != nil {
		return p, err
	}
	var kept authorization
	if err := json.Unmarshal(s.Kept, &kept); err != nil {
		return p, fmt.Errorf("payment %s: %w", s.ID, err)
	}
	token, err := evm.ParseAddress(s.Asset)
	if err != nil {
		return p, fmt.Errorf("payment %s: %w", s.ID, err)
	}
	need := kept.Requirement
	return payment.Payment{
		ID: s.ID, Network: s.Network, Payment: kept.Payment, Requirement: need, Route: s.Route, Account: s.Account, RequestID: s.RequestID,
		Domain: evm.Domain{Name: need.Name, Version: need.Version, Chain: s.Chain, Token: token},
		State:  s.State, Reason: s.Reason, Transaction: s.Transaction, CreatedAt: s.CreatedAt, EndedAt: s.EndedAt,
	}, nil
}

// queryOne runs a query that gives at most one payment.
func queryOne(ctx context.Context, db postgres.DB, sql string, args ...any) (payment.Payment, error) {
	rows, _ := db.Query(ctx, sql, args...)
	return pgx.CollectExactlyOneRow(rows, scan)
}

// find returns a payment; not_found when there is none with that id.
func find(ctx context.Context, db postgres.DB, id string) (payment.Payment, error) {
	p, err := queryOne(ctx, db, `SELECT `+columns+` FROM x402_payments WHERE id = $1`, id)
	return p, postgres.NotFound(err, "find payment")
}

// transition takes a payment from one state to another. The error is pgx.ErrNoRows
// when it is not in the first.
func transition(ctx context.Context, db postgres.DB, id string, from, to payment.State, reason x402.Reason, transaction string) (payment.Payment, error) {
	p, err := queryOne(ctx, db, `
		UPDATE x402_payments SET state = $3, reason = $4, transaction = $5,
			ended_at = CASE WHEN $3 IN ('granted', 'settling') THEN NULL ELSE clock_timestamp() END
		WHERE id = $1 AND state = $2 RETURNING `+columns, id, from, to, reason, transaction)
	if err != nil {
		err = fmt.Errorf("payment %s from %s to %s: %w", id, from, to, err)
	}
	return p, err
}

// countAttempt counts an attempt to settle a payment and returns how many there
// were.
func countAttempt(ctx context.Context, db postgres.DB, id string) (n int, err error) {
	err = db.QueryRow(ctx, `UPDATE x402_payments SET attempts = attempts + 1 WHERE id = $1 RETURNING attempts`, id).Scan(&n)
	if err != nil {
		err = fmt.Errorf("count an attempt to settle %s: %w", id, err)
	}
	return n, err
}
