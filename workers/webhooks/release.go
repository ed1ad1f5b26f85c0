package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/platform/ids"
)

// ReleaseTx has the deliveries sent, in the background, that were held back while an account
// was suspended: a release for each of its active subscriptions that has any. The caller
// holds the account's row, so that a worker has either marked a delivery as held before, or
// sees the account as it is now.
func (s *Service) ReleaseTx(ctx context.Context, tx pgx.Tx, account string) error {
	rows, _ := tx.Query(ctx, `SELECT s.id FROM webhook_subscriptions s WHERE s.account_id = $1 AND s.status = 'active'
		AND EXISTS (SELECT FROM webhook_deliveries d WHERE d.subscription_id = s.id AND d.status = 'held') ORDER BY s.id`, account)
	waiting, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find deliveries to release: %w", err)
	}
	now := s.Now()
	named, jobs := make([]string, len(waiting)), make([]river.InsertManyParams, len(waiting))
	for i := range waiting {
		named[i] = ids.New("rec_", now)
		jobs[i] = river.InsertManyParams{Args: RecoveryArgs{named[i], account}, InsertOpts: &river.InsertOpts{Queue: QueueBackground}}
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO webhook_recoveries (id, subscription_id, kind, since, until, created_at, total)
		SELECT n.id, n.subscription_id, $3, $5, $5, $4, (SELECT count(*) FROM webhook_deliveries d WHERE d.subscription_id = n.subscription_id AND d.status = 'held')
		FROM unnest($1::text[], $2::text[]) AS n (id, subscription_id)`, named, waiting, release, now, time.Time{})
	if err != nil {
		return fmt.Errorf("release deliveries: %w", err)
	}
	return s.enqueue(ctx, tx, jobs)
}
