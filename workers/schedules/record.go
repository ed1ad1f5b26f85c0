package schedules

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// record locks the schedules and writes the outcomes into the executions. It
// returns the attempt's number by execution, for those whose lease still held.
func (s *Service) record(ctx context.Context, tx pgx.Tx, all []finish, now time.Time) (map[string]int, error) {
	n := len(all)
	schedules, ids, numbers, statuses := make([]string, n), make([]string, n), make([]int, n), make([]string, n)
	results, webhooks, logs := make([]*Result, n), make([]*WebhookResult, n), make([]string, n)
	for i, f := range all {
		schedules[i], ids[i], numbers[i], statuses[i] = f.attempt.Schedule, f.attempt.Execution, f.attempt.Number, f.outcome.Status
		results[i], webhooks[i], logs[i] = &f.outcome.Result, f.outcome.Webhook, joinLogs(f.outcome.Logs)
	}
	var batch pgx.Batch
	batch.Queue(`SELECT FROM schedules WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE`, schedules)
	batch.Queue(`
		UPDATE schedule_executions e SET status = u.status, running = false, finished_at = $1, result = u.result, webhook = u.webhook,
			duration_ms = greatest(0, extract(epoch FROM $1 - e.executed_at) * 1000)::bigint,
			logs = e.logs || string_to_array(nullif(u.logs, ''), E'\n')
		FROM unnest($2::text[], $3::int[], $4::text[], $5::jsonb[], $6::jsonb[], $7::text[])
			AS u (id, number, status, result, webhook, logs)
		WHERE e.id = u.id AND e.attempts = u.number AND e.running RETURNING e.id, e.attempts`,
		now, ids, numbers, statuses, results, webhooks, logs)
	answers := tx.SendBatch(ctx, &batch)
	defer func() { _ = answers.Close() }() // an early return has its own error
	if _, err := answers.Exec(); err != nil {
		return nil, fmt.Errorf("lock schedules: %w", err)
	}
	rows, _ := answers.Query()
	ended := map[string]int{}
	var id string
	var number int
	if _, err := pgx.ForEachRow(rows, []any{&id, &number}, func() error { ended[id] = number; return nil }); err != nil {
		return nil, fmt.Errorf("record executions: %w", err)
	}
	return ended, answers.Close()
}

// joinLogs makes one text of log lines, none of which may hold a line break.
func joinLogs(lines []string) string {
	clean := make([]string, len(lines))
	for i, line := range lines {
		clean[i] = strings.ReplaceAll(line, "\n", " ")
	}
	return strings.Join(clean, "\n")
}

// countRuns brings the counters of the schedules up to date, once for each of
// them, however many of its executions have ended.
func countRuns(ctx context.Context, tx pgx.Tx, all []finish, counted []bool) error {
	type tally struct {
		runs   int
		last   time.Time
		status string
	}
	tallies := map[string]*tally{}
	for i, f := range all {
		if !counted[i] {
			continue
		}
		t := tallies[f.attempt.Schedule]
		if t == nil {
			t = &tally{}
			tallies[f.attempt.Schedule] = t
		}
		t.runs++
		if !f.attempt.ExecutedAt.Before(t.last) {
			t.last, t.status = f.attempt.ExecutedAt, f.outcome.Status
		}
	}
	var ids, statuses []string
	var runs []int
	var lasts []time.Time
	for id, t := range tallies {
		ids, statuses, runs, lasts = append(ids, id), append(statuses, t.status), append(runs, t.runs), append(lasts, t.last)
	}
	_, err := tx.Exec(ctx, `
		UPDATE schedules s SET execution_count = s.execution_count + u.runs, last_execution = u.last, last_execution_status = u.status
		FROM unnest($1::text[], $2::int[], $3::timestamptz[], $4::text[]) AS u (id, runs, last, status) WHERE s.id = u.id`,
		ids, runs, lasts, statuses)
	if err != nil {
		return fmt.Errorf("count runs: %w", err)
	}
	return nil
}

// startWaiting starts, for each schedule that has nothing under way any more,
// the first execution that waits.
func (s *Service) startWaiting(ctx context.Context, tx pgx.Tx, all []finish, now time.Time) error {
	schedules := make([]string, len(all))
	for i, f := range all {
		schedules[i] = f.attempt.Schedule
	}
	rows, _ := tx.Query(ctx, `
		UPDATE schedule_executions SET status = 'executing', run_at = $2, executed_at = $2, lease_until = $3
		WHERE id IN (
			SELECT DISTINCT ON (w.schedule_id) w.id FROM schedule_executions w
			WHERE w.schedule_id = ANY ($1) AND w.status = 'waiting' AND NOT EXISTS (
				SELECT FROM schedule_executions x WHERE x.schedule_id = w.schedule_id AND x.status = 'executing')
			ORDER BY w.schedule_id, w.scheduled_for)
		RETURNING id, (SELECT account_id FROM schedules s WHERE s.id = schedule_id)`, schedules, now, now.Add(pickup))
	begun, err := pgx.CollectRows(rows, scanStarted)
	if err != nil {
		return fmt.Errorf("start waiting executions: %w", err)
	}
	return s.enqueue(ctx, tx, begun)
}
