package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/ids"
	"sluice.dev/sluice/workers/schedules/plan"
)

// The statuses of an execution.
const (
	Waiting   = "waiting"   // behind an earlier run
	Executing = "executing" // has a job, or is being worked on
	Success   = "success"
	Failed    = "failed"
	Skipped   = "skipped"
)

// pickup is how long an execution may lie before somebody makes it another job:
// its worker may have died before it began.
const pickup = 10 * time.Second

// execution is a row to be made.
type execution struct {
	id, schedule, account, stream string
	scheduledFor                  *time.Time // nil: triggered by hand
	status, note                  string
	executedAt                    time.Time
	wait                          time.Duration // until its job is to be worked on
}

// newExecution turns a decided run into a row.
func newExecution(s Schedule, run plan.Run, now time.Time) execution {
	e := execution{id: ids.New(executionPrefix, now), schedule: s.ID, account: s.Account, scheduledFor: &run.At,
		status: map[plan.Fate]string{plan.Start: Executing, plan.Wait: Waiting, plan.Skip: Skipped}[run.Fate],
		note:   run.Note, executedAt: now}
	if s.Definition.Action != nil {
		e.stream = s.Definition.Action.StreamID
	}
	return e
}

// insertExecutions writes rows and returns the ids of those that are new; a run
// that exists already stays as it is.
func insertExecutions(ctx context.Context, tx pgx.Tx, made []execution) (map[string]bool, error) {
	n := len(made)
	ids, schedules, statuses := make([]string, n), make([]string, n), make([]string, n)
	runs, times, leases, logs := make([]*time.Time, n), make([]time.Time, n), make([]time.Time, n), make([]*string, n)
	for i, e := range made {
		ids[i], schedules[i], statuses[i], runs[i] = e.id, e.schedule, e.status, e.scheduledFor
		times[i], leases[i] = e.executedAt, e.executedAt.Add(e.wait+pickup)
		if e.note != "" {
			line := logLine(e.executedAt, e.note)
			logs[i] = &line
		}
	}
	rows, _ := tx.Query(ctx, `
		INSERT INTO schedule_executions
			(id, schedule_id, scheduled_for, status, run_at, executed_at, lease_until, finished_at, logs)
		SELECT id, schedule_id, run, status, at, at, lease, CASE WHEN status = 'skipped' THEN at END,
			array_remove(ARRAY[line], NULL)
		FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[])
			AS u (id, schedule_id, run, status, at, lease, line)
		ON CONFLICT DO NOTHING RETURNING id`, ids, schedules, runs, statuses, times, leases, logs)
	inserted := map[string]bool{}
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { inserted[id] = true; return nil }); err != nil {
		return nil, fmt.Errorf("insert executions: %w", err)
	}
	return inserted, nil
}

// logLine is one line of an execution's logs.
func logLine(at time.Time, text string) string {
	return at.UTC().Format("2006-01-02T15:04:05.000Z ") + text
}
