package apikeys

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/postgres"
)

// ExpiredFor is for how long edges remember a key after its end, and answer
// AUTH_001 rather than invalid_api_key.
const ExpiredFor = 30 * 24 * time.Hour

// purgeBatch bounds the keys of one transaction.
const purgeBatch = 1000

// Purge revokes the keys that ended long ago, so that edges may forget them. It
// returns how many.
func (s Store) Purge(ctx context.Context) (total int, err error) {
	for n := purgeBatch; n == purgeBatch && err == nil; total += n {
		n, err = s.purgeSome(ctx)
	}
	return total, err
}

// purgeSome holds the accounts of the keys before it touches these, as every
// writer does.
func (s Store) purgeSome(ctx context.Context) (n int, err error) {
	before := s.now().Add(-ExpiredFor)
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `SELECT k.id FROM api_keys k JOIN accounts a ON a.id = k.account_id
			WHERE k.revoked_at IS NULL AND k.expires_at < $1 ORDER BY a.id, k.id LIMIT $2 FOR SHARE OF a SKIP LOCKED`, before, purgeBatch)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("find keys that ended: %w", err)
		}
		rows, _ = tx.Query(ctx, `UPDATE api_keys SET revoked_at = $3 WHERE id = ANY($1) AND revoked_at IS NULL AND expires_at < $2
			RETURNING hash`, ids, before, s.now())
		hashes, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		if err != nil {
			return fmt.Errorf("purge keys: %w", err)
		}
		n = len(hashes)
		tags := make([]keytable.Tag, n)
		for i, h := range hashes {
			tags[i] = keytable.TagOfKey([32]byte(h))
		}
		return keyfeed.DeleteTx(ctx, tx, tags...)
	})
	return n, err
}
