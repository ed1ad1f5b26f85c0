package webhooks

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/ids"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

var _ events.Emitter = (*Service)(nil)

// EmitTx stores e and, for each subscription of the account that asked for it,
// a delivery with its job. An e without an ID gets one; an ID that the account
// has used before makes it do nothing. Paused subscriptions get deliveries too,
// which wait; disabled ones do not.
func (s *Service) EmitTx(ctx context.Context, tx pgx.Tx, e events.Event) error {
	_, err := s.emit(ctx, tx, s.complete(e))
	return err
}

// complete gives e what its publisher left out: a time and an id.
func (s *Service) complete(e events.Event) events.Event {
	if e.Time.IsZero() {
		e.Time = s.Now()
	}
	if e.ID == "" {
		e.ID = ids.New("evt_", s.Now())
	}
	return e
}

// emitted is what came of emitting an event.
type emitted struct {
	Stored     bool // false: the id was there already
	Deliveries int
}

// The event and its deliveries are one statement, so that no subscription
// can change between them.
const emitSQL = `
WITH event AS (
	INSERT INTO account_events (account_id, id, type, stream_id, recording_id, error_code, occurred_at, created_at, body)
	VALUES ($1, $2, $3, nullif($4, ''), nullif($5, ''), nullif($6, ''), $7, $8, $9)
	ON CONFLICT ON CONSTRAINT account_events_id_key DO NOTHING
	RETURNING seq
), delivery AS (
	INSERT INTO webhook_deliveries (subscription_id, event_seq, order_key, next_attempt_at, created_at)
	SELECT s.id, event.seq, CASE WHEN s.ordered THEN nullif($4, '') END, $8, $8
	FROM event, webhook_subscriptions s
	WHERE s.account_id = $1 AND s.status <> 'disabled' AND s.events && $10
	RETURNING id, subscription_id
)
SELECT true, 0, '' FROM event UNION ALL SELECT false, id, subscription_id FROM delivery`

// emit stores e, which is complete, in the caller's transaction. When its id is
// known it changes nothing and says so.
func (s *Service) emit(ctx context.Context, tx pgx.Tx, e events.Event) (emitted, error) {
	body, err := Body(e)
	if err != nil {
		return emitted{}, fmt.Errorf("encode event %s: %w", e.Type, err)
	}
	rows, err := tx.Query(ctx, emitSQL, e.Account, e.ID, e.Type, e.StreamID, e.RecordingID, e.ErrorCode,
		e.Time, s.Now(), body, catalogue.Patterns(e.Type))
	if err != nil {
		return emitted{}, fmt.Errorf("store event %s: %w", e.Type, err)
	}
	var (
		out     emitted
		isEvent bool
		args    = DeliveryArgs{Account: e.Account}
		jobs    []river.InsertManyParams
	)
	_, err = pgx.ForEachRow(rows, []any{&isEvent, &args.Delivery, &args.Subscription}, func() error {
		if isEvent {
			out.Stored = true
		} else {
			jobs = append(jobs, DeliveryJob(args, len(jobs)))
		}
		return nil
	})
	if err != nil {
		return emitted{}, fmt.Errorf("store event %s: %w", e.Type, err)
	}
	out.Deliveries = len(jobs)
	return out, s.enqueue(ctx, tx, jobs)
}

// enqueue puts jobs into the queue in the caller's transaction; workers are told
// when it commits.
func (s *Service) enqueue(ctx context.Context, tx pgx.Tx, jobs []river.InsertManyParams) error {
	if len(jobs) == 0 {
		return nil
	}
	if _, err := s.Jobs.InsertManyFastTx(ctx, tx, jobs); err != nil {
		return fmt.Errorf("enqueue %d deliveries: %w", len(jobs), err)
	}
	return nil
}
