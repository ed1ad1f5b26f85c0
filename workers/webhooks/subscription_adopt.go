package webhooks

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/ids"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// secretBytes is the length of a secret that the service makes; Standard Webhooks asks
// for 24 to 64.
const secretBytes = 32

// Adopt stores a subscription that another platform had, disabled, so that nothing is sent
// before somebody makes it active. The service makes its secret, which the answer has
// for the only time. Where the account has a subscription of the same address and events,
// that one is the answer, without its secret, and made is false: whoever adopts again
// adopts nothing twice. It fails as Create does.
func (s *Service) Adopt(ctx context.Context, account string, in Create) (out Subscription, made bool, err error) {
	raw := make([]byte, secretBytes)
	rand.Read(raw)
	in.Secret = "whsec_" + base64.StdEncoding.EncodeToString(raw)
	c := checker{groups: s.Groups}
	c.create(in)
	if err := s.finishCheck(ctx, &c, in.URL); err != nil {
		return Subscription{}, false, err
	}
	now := s.Now()
	id := ids.New("wh_", now)
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		if err := s.checkRoom(ctx, tx, account); err != nil { // it keeps others of the account away
			return err
		}
		rows, _ := tx.Query(ctx, `SELECT `+subscriptionColumns+` FROM webhook_subscriptions
			WHERE account_id = $1 AND url = $2 AND events @> $3 AND events <@ $3 ORDER BY id LIMIT 1`, account, in.URL, in.Events)
		there, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Subscription])
		if err != nil {
			return fmt.Errorf("look for a subscription: %w", err)
		}
		if len(there) > 0 {
			out = there[0]
			return nil
		}
		rows, _ = tx.Query(ctx, `
			INSERT INTO webhook_subscriptions (id, account_id, url, events, description, status, secret, max_concurrency, ordered, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, 'disabled', $6, $7, false, $8, $8) RETURNING `+subscriptionColumns,
			id, account, in.URL, in.Events, in.Description, s.Box.Seal([]byte(in.Secret), id), DefaultConcurrency, now)
		if out, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Subscription]); err != nil {
			return err
		}
		made = true
		return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "webhook.create", Target: id, After: out})
	})
	if err != nil {
		return Subscription{}, false, storeError(err, "store subscription")
	}
	if made {
		out.Secret = in.Secret
	}
	return out, made, nil
}
