package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/schedules/definition"
)

// Lease is how long an attempt may take. After it the worker counts as lost,
// and the execution is given to another one.
const Lease = 9 * time.Second

// Attempt is one try at an execution, held by one worker until its lease ends.
type Attempt struct {
	Execution  string
	Schedule   string
	Account    string
	Plan       string // the account's
	Definition definition.Definition
	Number     int // of this attempt, from 1; those cut short by a crash count
	Failures   int // before this attempt
	ExecutedAt time.Time
	Result     *Result // of an earlier attempt that got that far; nil: none
	Lost       bool    // an earlier attempt was cut short
}

// Result is what an execution did to a stream (spec, "Execution record").
type Result struct {
	StreamID string `json:"streamId,omitempty"`
	Action   string `json:"action,omitempty"` // in the past tense, such as started
	Message  string `json:"message"`
}

// Begin takes an execution for one attempt. Nil means that there is nothing to
// do: it has ended, is gone, or somebody else holds it. A time later than now
// means that the attempt is due only then.
func (s *Service) Begin(ctx context.Context, execution string) (*Attempt, time.Time, error) {
	now := s.now()
	a := Attempt{Execution: execution}
	err := s.DB.QueryRow(ctx, `
		UPDATE schedule_executions e SET running = true, attempts = attempts + 1, lease_until = $3
		FROM schedules s JOIN accounts a ON a.id = s.account_id
		WHERE e.id = $1 AND s.id = e.schedule_id AND e.status = 'executing' AND e.run_at <= $2 AND NOT e.running
		RETURNING s.id, s.account_id, a.plan, s.definition, e.attempts, e.failures, e.executed_at, e.result, e.attempts - 1 > e.failures`,
		execution, now, now.Add(Lease)).
		Scan(&a.Schedule, &a.Account, &a.Plan, &a.Definition, &a.Number, &a.Failures, &a.ExecutedAt, &a.Result, &a.Lost)
	if errors.Is(err, pgx.ErrNoRows) {
		due, err := s.dueAgain(ctx, execution)
		return nil, due, err
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("begin execution %s: %w", execution, err)
	}
	return &a, now, nil
}

// dueAgain returns when an execution waits for its next attempt; zero when it
// waits for none.
func (s *Service) dueAgain(ctx context.Context, execution string) (time.Time, error) {
	var due time.Time
	err := s.DB.QueryRow(ctx, `SELECT run_at FROM schedule_executions WHERE id = $1 AND status = 'executing' AND NOT running`,
		execution).Scan(&due)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read execution %s: %w", execution, err)
	}
	return due, nil
}

// Retry ends an attempt in a failure that is tried again at the given time.
// What the attempt has achieved is kept.
func (s *Service) Retry(ctx context.Context, a Attempt, at time.Time, result *Result, logs []string) error {
	_, err := s.DB.Exec(ctx, `
		UPDATE schedule_executions SET running = false, failures = failures + 1, run_at = $3, lease_until = $4,
			result = coalesce($5, result), logs = logs || $6::text[]
		WHERE id = $1 AND attempts = $2 AND running`, a.Execution, a.Number, at, at.Add(pickup), result, logs)
	if err != nil {
		return fmt.Errorf("put execution %s off: %w", a.Execution, err)
	}
	return nil
}

// TakeOver gives a new job to executions whose worker was lost: begun and not
// ended within the lease, or never picked up. It returns how many.
func (s *Service) TakeOver(ctx context.Context) (int, error) {
	var taken []string
	err := pgx.BeginFunc(ctx, s.DB, func(tx pgx.Tx) error {
		now := s.now()
		rows, err := tx.Query(ctx, `
			UPDATE schedule_executions SET running = false, lease_until = $2,
				logs = CASE WHEN running THEN logs || $3::text ELSE logs END
			WHERE id IN (SELECT id FROM schedule_executions WHERE status = 'executing' AND lease_until < $1
				LIMIT $4 FOR UPDATE SKIP LOCKED)
			RETURNING id`, now, now.Add(pickup), logLine(now, "the worker was lost; the execution goes to another one"), s.Batch)
		if err != nil {
			return err
		}
		if taken, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return err
		}
		return s.enqueue(ctx, tx, taken)
	})
	if err != nil {
		return 0, fmt.Errorf("take executions over: %w", err)
	}
	return len(taken), nil
}

// event is the account event with which an execution ends. Its id follows from
// the execution's, so that it exists once.
func (a Attempt) event(kind string, data map[string]any) controlplane.Event {
	data["schedule_id"], data["execution_id"] = a.Schedule, a.Execution
	e := controlplane.Event{ID: "evt_" + a.Execution, Account: a.Account, Type: kind, Data: data}
	if a.Definition.Action != nil {
		e.StreamID = a.Definition.Action.StreamID
	}
	return e
}
