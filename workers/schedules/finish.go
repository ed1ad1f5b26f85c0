package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Outcome is how an execution ends.
type Outcome struct {
	Status  string // Success or Failed
	Result  Result
	Webhook *WebhookResult // nil: no webhook was called
	Logs    []string       // of the last attempt
	Code    decision.Code  // of a failure
	Event   *events.Event
}

// WebhookResult is the last answer to a webhook call (contract 6.10).
type WebhookResult struct {
	Status       int `json:"status"`       // 0: no answer
	ResponseTime int `json:"responseTime"` // milliseconds
	Payload      any `json:"payload"`      // what was sent
}

// finish is an attempt with its outcome.
type finish struct {
	attempt Attempt
	outcome Outcome
}

// Finish ends an execution: its record, the schedule's counters, the account's
// event and the start of a run that waits behind it commit together. An attempt
// that was taken over changes nothing. Calls that come together share a
// transaction.
func (s *Service) Finish(ctx context.Context, a Attempt, o Outcome) error {
	if _, err := s.finishes.Call(ctx, finish{a, o}); err != nil {
		return fmt.Errorf("finish execution %s: %w", a.Execution, err)
	}
	return nil
}

// finishAll is Finish for several attempts. It reports which of them counted.
//
// The schedules' rows are locked first, in order: whoever claims a schedule
// sees its executions either under way or ended, and two workers that finish
// executions of the same schedules do not block each other for ever.
func (s *Service) finishAll(ctx context.Context, all []finish) (counted []bool, err error) {
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		now := s.now()
		ended, err := s.record(ctx, tx, all, now)
		if err != nil {
			return err
		}
		counted = make([]bool, len(all))
		var events []events.Event
		for i, f := range all {
			if counted[i] = ended[f.attempt.Execution] == f.attempt.Number; counted[i] {
				events = append(events, f.outcome.events(f.attempt, now)...)
			}
		}
		if err := countRuns(ctx, tx, all, counted); err != nil {
			return err
		}
		for _, e := range events {
			if err := s.Events.EmitTx(ctx, tx, e); err != nil {
				return err
			}
		}
		return s.startWaiting(ctx, tx, all, now)
	})
	return counted, err
}

// events are what the account sees of the outcome.
func (o Outcome) events(a Attempt, now time.Time) []events.Event {
	last := a.event("schedule.executed", map[string]any{"status": Success})
	if o.Status == Failed {
		last = a.event("schedule.failed", map[string]any{"error_message": o.Result.Message})
		last.ErrorCode = string(o.Code)
	}
	last.Time = now
	if o.Event == nil {
		return []events.Event{last}
	}
	return []events.Event{*o.Event, last}
}
