package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/postgres"
	"sluice.dev/sluice/filters/decision"
)

// Outcome is how an execution ends.
type Outcome struct {
	Status  string // Success or Failed
	Result  Result
	Webhook *WebhookResult // nil: no webhook was called
	Logs    []string       // of the last attempt
	Code    decision.Code  // of a failure
	Event   *controlplane.Event
}

// WebhookResult is the last answer to a webhook call (spec, "Execution
// record").
type WebhookResult struct {
	Status       int `json:"status"`       // 0: no answer
	ResponseTime int `json:"responseTime"` // milliseconds
	Payload      any `json:"payload"`      // what was sent
}

// errTakenOver says that an attempt's lease had ended: its outcome does not
// count.
var errTakenOver = errors.New("the execution was taken over")

// Finish ends an execution: its record, the schedule's counters, the account's
// event and the start of a run that waits behind it commit together. An attempt
// that was taken over changes nothing.
func (s *Service) Finish(ctx context.Context, a Attempt, o Outcome) error {
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		now := s.now()
		waiting, err := record(ctx, tx, a, o, now)
		if err != nil {
			return err
		}
		if err := s.enqueue(ctx, tx, waiting); err != nil {
			return err
		}
		for _, e := range o.events(a, now) {
			if err := s.Events.EmitTx(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errTakenOver) {
		return fmt.Errorf("finish execution %s: %w", a.Execution, err)
	}
	return nil
}

// record writes the outcome in one round trip and returns the waiting execution
// that may start now, if there is one. The schedule's row is locked first:
// whoever claims the schedule sees this execution either under way or ended.
func record(ctx context.Context, tx pgx.Tx, a Attempt, o Outcome, now time.Time) ([]string, error) {
	var batch pgx.Batch
	batch.Queue(`UPDATE schedules SET execution_count = execution_count + 1, last_execution = $2, last_execution_status = $3 WHERE id = $1`,
		a.Schedule, a.ExecutedAt, o.Status)
	batch.Queue(`
		UPDATE schedule_executions SET status = $3, running = false, finished_at = $4, result = $5, webhook = $6,
			duration_ms = greatest(0, extract(epoch FROM $4 - executed_at) * 1000)::bigint, logs = logs || $7::text[]
		WHERE id = $1 AND attempts = $2 AND running`, a.Execution, a.Number, o.Status, now, o.Result, o.Webhook, o.Logs)
	batch.Queue(`
		UPDATE schedule_executions SET status = 'executing', run_at = $2, executed_at = $2, lease_until = $3
		WHERE id = (SELECT id FROM schedule_executions WHERE schedule_id = $1 AND status = 'waiting' ORDER BY scheduled_for LIMIT 1)
		AND NOT EXISTS (SELECT FROM schedule_executions WHERE schedule_id = $1 AND status = 'executing')
		RETURNING id`, a.Schedule, now, now.Add(pickup))
	results := tx.SendBatch(ctx, &batch)
	defer results.Close()
	if _, err := results.Exec(); err != nil {
		return nil, err
	}
	if tag, err := results.Exec(); err != nil || tag.RowsAffected() == 0 {
		return nil, errors.Join(err, errTakenOver)
	}
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	waiting, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return waiting, errors.Join(err, results.Close())
}

// events are what the account sees of the outcome.
func (o Outcome) events(a Attempt, now time.Time) []controlplane.Event {
	last := a.event("schedule.executed", map[string]any{"status": Success})
	if o.Status == Failed {
		last = a.event("schedule.failed", map[string]any{"error_message": o.Result.Message})
		last.ErrorCode = string(o.Code)
	}
	last.Time = now
	if o.Event == nil {
		return []controlplane.Event{last}
	}
	return []controlplane.Event{*o.Event, last}
}
