package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"go.opentelemetry.io/otel/trace"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/process/telemetry/traces"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/retry"
	"sluice.dev/sluice/workers/webhooks/sender"
)

// closed is an attempt with its result.
type closed struct {
	opened
	response sender.Response
	at       time.Time // when it ended
	next     retry.Next
	span     trace.SpanContext // of the attempt; the next one belongs to the same trace
}

// nextAt is when the next attempt goes out, or nil.
func (c *closed) nextAt() *time.Time {
	if c.next.State != retry.Again {
		return nil
	}
	at := c.at.Add(c.next.Delay)
	return &at
}

// repeatAfter is the pause after a write that failed, as when the database is
// being restarted.
const repeatAfter = 100 * time.Millisecond

// closeAll commits the results of attempts together with what follows from
// each: the next attempt's job, or the event that says that there is none. It
// repeats a commit that failed until ctx ends; repeating one that had
// succeeded after all changes nothing.
func (d *Deliverer) closeAll(ctx context.Context, all []closed) ([]struct{}, error) {
	for i := range all {
		all[i].next = retry.Decide(all[i].schedule, all[i].failures, all[i].response.Outcome(), d.Random())
	}
	for {
		err := postgres.InTx(ctx, d.DB, func(tx pgx.Tx) error { return d.closeTx(ctx, tx, all) })
		if err == nil {
			return make([]struct{}, len(all)), nil
		}
		if notTransient(err) {
			return nil, err
		}
		d.Log.WarnContext(ctx, "webhook results not stored yet", "attempts", len(all), "cause", err)
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("store results: %w", err)
		case <-time.After(repeatAfter):
		}
	}
}

// closeTx is the transaction of closeAll: the log, the deliveries, the retries
// and what the account is told are all there afterwards, or nothing is.
func (d *Deliverer) closeTx(ctx context.Context, tx pgx.Tx, all []closed) error {
	if err := logResults(ctx, tx, all); err != nil {
		return fmt.Errorf("log attempts: %w", err)
	}
	applied, err := advance(ctx, tx, all)
	if err != nil {
		return fmt.Errorf("advance deliveries: %w", err)
	}
	var jobs []river.InsertManyParams
	for _, c := range applied {
		if at := c.nextAt(); at != nil {
			jobs = append(jobs, retryJob(c, *at))
		}
	}
	if len(jobs) > 0 {
		if _, err := d.Service.Jobs.InsertManyFastTx(ctx, tx, jobs); err != nil {
			return fmt.Errorf("enqueue retries: %w", err)
		}
	}
	return d.noteHealth(ctx, tx, applied)
}

// retryJob is the job for the attempt after c. It names the generation that
// advance has just given the delivery.
func retryJob(c closed, at time.Time) river.InsertManyParams {
	return river.InsertManyParams{
		Args:       webhooks.DeliveryArgs{Delivery: c.delivery, Generation: c.generation + 1, Subscription: c.subscription, Account: c.account},
		InsertOpts: &river.InsertOpts{Queue: webhooks.QueueRetry, ScheduledAt: at, Metadata: traces.Metadata(c.span)},
	}
}

// logResults completes the log, also of attempts whose delivery has moved on.
func logResults(ctx context.Context, tx pgx.Tx, all []closed) error {
	n := len(all)
	ids, numbers, millis := make([]int64, n), make([]int, n), make([]int64, n)
	outcomes, errs, headers := make([]string, n), make([]string, n), make([]string, n)
	statuses, bodies, next := make([]int, n), make([][]byte, n), make([]*time.Time, n)
	for i := range all {
		c := &all[i]
		ids[i], numbers[i], millis[i], next[i] = c.delivery, c.number, c.response.Duration.Milliseconds(), c.nextAt()
		outcomes[i], errs[i], statuses[i], bodies[i] = "failed", c.response.Error, c.response.StatusCode, c.response.Body
		if c.response.OK() {
			outcomes[i] = "succeeded"
		}
		h, err := json.Marshal(c.response.Headers)
		if err != nil {
			return err
		}
		headers[i] = string(h)
	}
	_, err := tx.Exec(ctx, `
		UPDATE webhook_attempts a SET outcome = r.outcome, duration_ms = r.duration_ms, status_code = nullif(r.status_code, 0),
			error = nullif(r.error, ''), response_headers = CASE WHEN r.status_code <> 0 THEN r.headers::jsonb END,
			response_body = CASE WHEN r.status_code <> 0 THEN r.body END, next_attempt_at = r.next_attempt_at
		FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::bigint[], $5::integer[], $6::text[], $7::text[], $8::bytea[], $9::timestamptz[])
			AS r (delivery_id, number, outcome, duration_ms, status_code, error, headers, body, next_attempt_at)
		WHERE a.delivery_id = r.delivery_id AND a.number = r.number`,
		ids, numbers, outcomes, millis, statuses, errs, headers, bodies, next)
	return err
}

// advance moves deliveries on, and returns those that were still at the
// attempt's generation: a resend or another worker may have overtaken it.
func advance(ctx context.Context, tx pgx.Tx, all []closed) ([]closed, error) {
	n := len(all)
	ids, generations, states, next := make([]int64, n), make([]int, n), make([]string, n), make([]*time.Time, n)
	at := make([]time.Time, n)
	byID := make(map[int64]int, n)
	for i := range all {
		c := &all[i]
		ids[i], generations[i], states[i], next[i], at[i] = c.delivery, c.generation, string(c.next.State), c.nextAt(), c.at
		byID[c.delivery] = i
	}
	rows, _ := tx.Query(ctx, `
		UPDATE webhook_deliveries d SET status = r.state, generation = d.generation + 1,
			failures = d.failures + CASE WHEN r.state = 'succeeded' THEN 0 ELSE 1 END,
			error_code = CASE WHEN r.state = 'failed' THEN $6 END,
			next_attempt_at = r.next_attempt_at, finished_at = CASE WHEN r.state <> 'pending' THEN r.at END
		FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::timestamptz[], $5::timestamptz[]) AS r (id, generation, state, next_attempt_at, at)
		WHERE d.id = r.id AND d.generation = r.generation AND d.status = 'pending' RETURNING d.id`,
		ids, generations, states, next, at, string(decision.Webhook001))
	moved, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	applied := make([]closed, 0, len(moved))
	for _, id := range moved {
		applied = append(applied, all[byID[id]])
	}
	return applied, err
}
