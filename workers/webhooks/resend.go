package webhooks

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// recoveryStep is how many deliveries one step of a recovery resends.
const recoveryStep = 500

// again starts deliveries anew: at once, with the whole schedule before them.
// Their generation grows, so that a retry that was planned is overtaken.
const againSQL = `UPDATE webhook_deliveries SET status = 'pending', generation = generation + 1, failures = 0,
	error_code = NULL, next_attempt_at = $1, finished_at = NULL `

// returning is what again reads of each delivery.
const returning = `RETURNING id, generation, subscription_id,
	coalesce((SELECT w.account_id FROM webhook_subscriptions w WHERE w.id = webhook_deliveries.subscription_id), '')`

// Resend makes a delivery of account be attempted at once, whatever its state;
// it takes the place of a retry that was planned. It fails with not_found, and
// with conflict when the subscription is not active.
func (s *Service) Resend(ctx context.Context, account, id string, number int64) error {
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		status, err := lockStatus(ctx, tx, account, id)
		if err != nil {
			return err
		}
		if status != Active {
			return apierror.Errorf(decision.Conflict, "The subscription is %s: make it active first.", status)
		}
		n, err := s.again(ctx, tx, 0, againSQL+`WHERE id = $2 AND subscription_id = $3 `+returning, s.Now(), number, id)
		if err == nil && n == 0 {
			err = pgx.ErrNoRows
		}
		return err
	})
	return postgres.NotFound(err, "resend delivery")
}

// again runs a statement that returns deliveries, and puts a job for each into
// the queue, as if earlier ones had been made.
func (s *Service) again(ctx context.Context, tx pgx.Tx, earlier int, sql string, args ...any) (int, error) {
	rows, _ := tx.Query(ctx, sql, args...)
	jobs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (river.InsertManyParams, error) {
		var a DeliveryArgs
		err := row.Scan(&a.Delivery, &a.Generation, &a.Subscription, &a.Account)
		return DeliveryJob(a, earlier), err
	})
	if err != nil {
		return 0, err
	}
	return len(jobs), s.enqueue(ctx, tx, jobs)
}

// RecoveryStep does a part of recovery id in one transaction; done says that
// nothing is left. A recovery whose subscription was deleted is done.
func (s *Service) RecoveryStep(ctx context.Context, id string) (done bool, err error) {
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `SELECT `+recoveryColumns+` FROM webhook_recoveries WHERE id = $1 AND status = 'running' FOR UPDATE`, id)
		r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Recovery])
		if errors.Is(err, pgx.ErrNoRows) {
			done = true
			return nil
		}
		if err != nil {
			return err
		}
		n, err := s.step(ctx, tx, r)
		if err != nil {
			return err
		}
		done = n == 0
		return s.progress(ctx, tx, r, n)
	})
	if err != nil {
		return false, fmt.Errorf("recovery %s: %w", id, err)
	}
	return done, nil
}

// step resends the next deliveries of r, oldest first, and returns how many. None
// are left when that is 0, also because the subscription is not active any more.
func (s *Service) step(ctx context.Context, tx pgx.Tx, r Recovery) (int, error) {
	if r.Kind == release {
		return s.again(ctx, tx, firstDeliveries, againSQL+`WHERE id IN (SELECT d.id FROM webhook_deliveries d
			JOIN webhook_subscriptions s ON s.id = d.subscription_id AND s.status = 'active'
			WHERE d.subscription_id = $2 AND d.status = 'held' ORDER BY d.id LIMIT $3) `+returning,
			s.Now(), r.SubscriptionID, recoveryStep)
	}
	// Only what had failed before the recovery began: what fails again is for the next one.
	n, err := s.again(ctx, tx, firstDeliveries, againSQL+`WHERE id IN (SELECT d.id FROM webhook_deliveries d
		JOIN account_events e ON e.seq = d.event_seq
		JOIN webhook_subscriptions s ON s.id = d.subscription_id AND s.status = 'active'
		WHERE d.subscription_id = $2 AND d.status = 'failed' AND e.created_at >= $4 AND e.created_at < $5 AND d.finished_at < $6
		ORDER BY d.id LIMIT $3) `+returning,
		s.Now(), r.SubscriptionID, recoveryStep, r.Since.Time, r.Until.Time, r.CreatedAt.Time)
	if n > 0 || err != nil || !r.IncludeMissed {
		return n, err
	}
	return s.addMissed(ctx, tx, r)
}

// addMissed makes the deliveries that were not made while the subscription was
// disabled, or before it existed.
func (s *Service) addMissed(ctx context.Context, tx pgx.Tx, r Recovery) (int, error) {
	return s.again(ctx, tx, firstDeliveries, `
		INSERT INTO webhook_deliveries (subscription_id, event_seq, order_key, next_attempt_at, created_at)
		SELECT s.id, e.seq, CASE WHEN s.ordered THEN e.stream_id END, $1, $1
		FROM webhook_subscriptions s JOIN account_events e ON e.account_id = s.account_id
		WHERE s.id = $2 AND s.status = 'active' AND e.created_at >= $4 AND e.created_at < $5
			AND EXISTS (SELECT 1 FROM unnest(s.events) AS p WHERE p = e.type OR p LIKE '%*' AND starts_with(e.type, left(p, -1)))
			AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.subscription_id = s.id AND d.event_seq = e.seq)
		ORDER BY e.seq LIMIT $3
		ON CONFLICT ON CONSTRAINT webhook_deliveries_once DO NOTHING
		`+returning,
		s.Now(), r.SubscriptionID, recoveryStep, r.Since.Time, r.Until.Time)
}

// progress notes that n more are queued; a step that found nothing ends r.
func (s *Service) progress(ctx context.Context, tx pgx.Tx, r Recovery, n int) error {
	_, err := tx.Exec(ctx, `
		UPDATE webhook_recoveries SET resent = resent + $2, total = greatest(total, resent + $2),
			status = CASE WHEN $2 = 0 THEN 'completed' ELSE status END, finished_at = CASE WHEN $2 = 0 THEN $3::timestamptz END
		WHERE id = $1`, r.ID, n, s.Now())
	return err
}
