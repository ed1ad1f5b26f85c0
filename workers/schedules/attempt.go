package schedules

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/schedules/definition"
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
	Sealed     []byte  // values of the webhook's headers, until Begin has opened them into Definition
	Unreadable bool    `db:"-"` // they cannot be opened: the webhook must not be called
}

// Result is what an execution did to a stream (contract 6.10).
type Result struct {
	StreamID string `json:"streamId,omitempty"`
	Action   string `json:"action,omitempty"` // in the past tense, such as started
	Message  string `json:"message"`
}

// begun is what came of asking for an attempt.
type begun struct {
	attempt *Attempt
	due     time.Time
}

// Begin takes an execution for one attempt. Nil means that there is nothing to
// do now: it has ended, is gone, or somebody else holds it; or, if the time is
// not zero, its attempt is due only then. Calls that come together share a
// statement.
func (s *Service) Begin(ctx context.Context, execution string) (*Attempt, time.Time, error) {
	b, err := s.begins.Call(ctx, execution)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("begin execution %s: %w", execution, err)
	}
	return b.attempt, b.due, nil
}

// beginAll is Begin for several executions.
func (s *Service) beginAll(ctx context.Context, executions []string) ([]begun, error) {
	now := s.now()
	rows, _ := s.DB.Query(ctx, `
		UPDATE schedule_executions e SET running = true, attempts = attempts + 1, lease_until = $3
		FROM schedules s JOIN accounts a ON a.id = s.account_id
		WHERE e.id = ANY ($1) AND s.id = e.schedule_id AND e.status = 'executing' AND e.run_at <= $2 AND NOT e.running AND a.suspended_at IS NULL
		RETURNING e.id, s.id, s.account_id, a.plan, s.definition, e.attempts, e.failures, e.executed_at, e.result, e.attempts - 1 > e.failures,
			s.sealed_headers`,
		executions, now, now.Add(Lease))
	attempts, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[Attempt])
	if err != nil {
		return nil, err
	}
	all := make([]begun, len(executions))
	for _, a := range attempts {
		s.openHeaders(a)
		// A second job for the same execution finds that the first one holds
		// it.
		all[slices.Index(executions, a.Execution)].attempt = a
	}
	if len(attempts) < len(executions) {
		if err := s.putOffSuspended(ctx, executions, now); err != nil {
			return nil, err
		}
		err = s.dueAgain(ctx, executions, all)
	}
	return all, err
}

// dueAgain fills in when the executions that could not be begun are due for
// their next attempt.
func (s *Service) dueAgain(ctx context.Context, executions []string, all []begun) error {
	rows, _ := s.DB.Query(ctx, `SELECT id, run_at FROM schedule_executions WHERE id = ANY ($1) AND status = 'executing' AND NOT running`,
		executions)
	var id string
	var due time.Time
	_, err := pgx.ForEachRow(rows, []any{&id, &due}, func() error {
		for i := range executions {
			if executions[i] == id {
				all[i].due = due
			}
		}
		return nil
	})
	return err
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
//
// While jobs have been waiting in the queue for a second, the workers are
// behind, and an execution that was never picked up most likely has its job
// there: a second one would only add to the load.
func (s *Service) TakeOver(ctx context.Context) (int, error) {
	var taken []started
	err := pgx.BeginFunc(ctx, s.DB, func(tx pgx.Tx) (err error) {
		now := s.now()
		rows, _ := tx.Query(ctx, `
			UPDATE schedule_executions SET running = false, lease_until = $2,
				logs = CASE WHEN running THEN logs || $3::text ELSE logs END
			WHERE id IN (
				SELECT id FROM schedule_executions WHERE status = 'executing' AND lease_until < $1 AND (running OR NOT EXISTS (
					SELECT FROM river_job WHERE state = 'available' AND queue = $5 AND scheduled_at < now() - interval '1 second'))
				LIMIT $4 FOR UPDATE SKIP LOCKED)
			RETURNING id, (SELECT account_id FROM schedules s WHERE s.id = schedule_id)`, now, now.Add(pickup), logLine(now, "the worker was lost; the execution goes to another one"), s.Batch, Queue)
		if taken, err = pgx.CollectRows(rows, scanStarted); err != nil {
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
func (a Attempt) event(kind string, data map[string]any) events.Event {
	data["schedule_id"], data["execution_id"] = a.Schedule, a.Execution
	e := events.Event{ID: "evt_" + a.Execution, Account: a.Account, Type: kind, Data: data}
	if a.Definition.Action != nil {
		e.StreamID = a.Definition.Action.StreamID
	}
	return e
}
