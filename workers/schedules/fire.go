package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/schedules/plan"
)

// Fired is what one claim has done.
type Fired struct {
	Schedules int           // claimed
	Started   int           // executions given a job
	Full      bool          // the batch was full: there may be more
	Lateness  time.Duration // of the claimed schedule that had waited longest
	Next      time.Time     // when the next schedule is due, if within Ahead; zero: none, or not asked because the batch was full
}

// Ahead is how far FireDue looks for the next schedule. The schedules of accounts that are
// behind stand among those of others, and each look reads all of them.
const Ahead = 200 * time.Millisecond

// dueSchedule is a claimed row.
type dueSchedule struct {
	Schedule
	first time.Time // the run it was claimed for
	next  *time.Time
}

// FireDue claims a batch of due schedules that no other worker holds, makes
// their runs into executions and moves them on, all in one transaction. A crash
// before its end leaves everything as it was: the claim is a row lock, which
// ends with the connection. It takes those of the accounts that are Behind
// alone, or those of all others; turns nil: nobody is.
func (s *Service) FireDue(ctx context.Context, turns Turns, behind bool) (Fired, error) {
	var fired Fired
	now, among := s.now(), among{behind: behind}
	if turns != nil {
		among.accounts = turns.Behind()
	}
	if behind && len(among.accounts) == 0 {
		return fired, nil
	}
	soonest, err := s.soonest(ctx, time.Time{}, now, among)
	if err != nil || soonest.IsZero() || soonest.After(now) { // as nearly always: no transaction for nothing
		fired.Next = soonest
		return fired, err
	}
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		due, err := s.claim(ctx, tx, now, among)
		if err != nil || len(due) == 0 {
			return err
		}
		fired = Fired{Schedules: len(due), Full: len(due) == s.Batch, Lateness: now.Sub(due[0].first)}
		if due, err = holdSuspended(ctx, tx, due); err != nil || len(due) == 0 {
			return err
		}
		fired.Started, err = s.fire(ctx, tx, due, now, turns)
		return err
	})
	if err != nil || fired.Full || behind {
		return fired, err
	}
	fired.Next, err = s.soonest(ctx, now, now, among)
	return fired, err
}

// among says whose schedules are meant: those of these accounts, or of all others.
type among struct {
	accounts []string
	behind   bool
}

// list is accounts as a parameter: empty, not null.
func (a among) list() []string { return append([]string{}, a.accounts...) }

// lookAhead is how many batches of due schedules are looked at to find what one
// claim takes.
const lookAhead = 10

// claim locks a batch of due schedules that nobody else holds. Accounts take turns:
// the first due of each come before the second of any, so that many schedules of
// one account do not make others late. It costs as much as there are due, up to
// lookAhead batches, and as are due of the accounts that are not meant.
func (s *Service) claim(ctx context.Context, tx pgx.Tx, now time.Time, a among) ([]dueSchedule, error) {
	rows, _ := tx.Query(ctx, `
		WITH due AS MATERIALIZED (SELECT id, account_id, next_fire_at FROM schedules WHERE status = 'active' AND next_fire_at <= $1
			AND (account_id = ANY ($4)) = $5 ORDER BY next_fire_at LIMIT $3),
		turns AS (SELECT id, row_number() OVER (PARTITION BY account_id ORDER BY next_fire_at, id) AS turn FROM due)
		SELECT `+scheduleColumns+` FROM schedules JOIN turns USING (id) WHERE status = 'active' AND next_fire_at <= $1
		ORDER BY turn, next_fire_at LIMIT $2 FOR NO KEY UPDATE OF schedules SKIP LOCKED`, now, s.Batch, lookAhead*s.Batch, a.list(), a.behind)
	claimed, err := pgx.CollectRows(rows, scanSchedule)
	if err != nil {
		return nil, fmt.Errorf("claim schedules: %w", err)
	}
	due := make([]dueSchedule, len(claimed))
	for i, c := range claimed {
		due[i] = dueSchedule{Schedule: c, first: *c.Next}
	}
	return due, nil
}

// fire decides what becomes of each claimed schedule's runs and writes it down.
func (s *Service) fire(ctx context.Context, tx pgx.Tx, due []dueSchedule, now time.Time, turns Turns) (int, error) {
	busy, err := openRuns(ctx, tx, due)
	if err != nil {
		return 0, err
	}
	var made []execution
	for i := range due {
		made = append(made, s.runsOf(&due[i], busy[due[i].ID], now)...)
	}
	if turns != nil {
		for i := range made {
			if made[i].status == Executing {
				made[i].wait = turns.Turn(made[i].account)
			}
		}
	}
	inserted, err := insertExecutions(ctx, tx, made)
	if err != nil {
		return 0, err
	}
	var begun []started
	for _, e := range made {
		switch {
		case !inserted[e.id]: // made before: the schedule was set back to a time that had been claimed
		case e.status == Executing:
			begun = append(begun, started{id: e.id, account: e.account, wait: e.wait})
		case e.status == Skipped:
			if err := s.announceSkip(ctx, tx, e); err != nil {
				return 0, err
			}
		}
	}
	if err := s.enqueue(ctx, tx, ranked(begun)); err != nil {
		return 0, fmt.Errorf("enqueue executions: %w", err)
	}
	return len(begun), moveOn(ctx, tx, due)
}

// runsOf returns the executions of one schedule and sets its next run. A
// definition that this version cannot read must not stop the others: the
// schedule is left alone for an hour, and the log says so.
func (s *Service) runsOf(d *dueSchedule, busy plan.Busy, now time.Time) []execution {
	p, err := d.Definition.Schedule.Plan()
	if err != nil {
		s.Log.Error("schedule cannot be read; it is tried again in an hour", "schedule", d.ID, "cause", err)
		later := now.Add(time.Hour)
		d.next = &later
		return nil
	}
	if next, ok := p.Next(now); ok {
		d.next = &next
	}
	var made []execution
	for _, run := range plan.Decide(p, d.Definition.Policy(), d.first, now, busy) {
		made = append(made, newExecution(d.Schedule, run, now))
	}
	return made
}

// openRuns counts what is going on with the claimed schedules. It is a
// statement of its own, after the locks were taken: an execution that ended
// before then must not count.
func openRuns(ctx context.Context, tx pgx.Tx, due []dueSchedule) (map[string]plan.Busy, error) {
	ids := make([]string, len(due))
	for i, d := range due {
		ids[i] = d.ID
	}
	rows, _ := tx.Query(ctx, `
		SELECT schedule_id, count(*) FILTER (WHERE status = 'executing'), count(*) FILTER (WHERE status = 'waiting')
		FROM schedule_executions WHERE schedule_id = ANY ($1) AND status IN ('waiting', 'executing') GROUP BY schedule_id`, ids)
	open := map[string]plan.Busy{}
	var id string
	var busy plan.Busy
	_, err := pgx.ForEachRow(rows, []any{&id, &busy.Running, &busy.Waiting}, func() error {
		busy.Executing = busy.Running > 0
		open[id] = busy
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count open executions: %w", err)
	}
	return open, nil
}

// moveOn sets the next run of each claimed schedule; one that has none is
// completed.
func moveOn(ctx context.Context, tx pgx.Tx, due []dueSchedule) error {
	ids, nexts := make([]string, len(due)), make([]*time.Time, len(due))
	for i, d := range due {
		ids[i], nexts[i] = d.ID, d.next
	}
	_, err := tx.Exec(ctx, `
		UPDATE schedules s SET next_fire_at = u.next, status = CASE WHEN u.next IS NULL THEN 'completed' ELSE 'active' END
		FROM unnest($1::text[], $2::timestamptz[]) AS u (id, next) WHERE s.id = u.id`, ids, nexts)
	if err != nil {
		return fmt.Errorf("move schedules on: %w", err)
	}
	return nil
}

// soonest returns when the first schedule of those meant is due after a time; zero when none
// is within Ahead of now. After a claim, those that are due still are held by another
// worker.
func (s *Service) soonest(ctx context.Context, after, now time.Time, a among) (time.Time, error) {
	var next *time.Time
	err := s.DB.QueryRow(ctx, `SELECT min(next_fire_at) FROM schedules WHERE status = 'active' AND next_fire_at > $3 AND next_fire_at <= $4
		AND (account_id = ANY ($1)) = $2`, a.list(), a.behind, after, now.Add(Ahead)).Scan(&next)
	if err != nil {
		return time.Time{}, fmt.Errorf("look for the next schedule: %w", err)
	}
	if next == nil {
		return time.Time{}, nil
	}
	return *next, nil
}

// announceSkip puts a skipped run among the account's events.
func (s *Service) announceSkip(ctx context.Context, tx pgx.Tx, e execution) error {
	err := s.Events.EmitTx(ctx, tx, events.Event{ID: "evt_" + e.id, Account: e.account, Type: "schedule.skipped",
		StreamID: e.stream, Time: e.executedAt, Data: map[string]any{"schedule_id": e.schedule, "execution_id": e.id, "reason": e.note}})
	if err != nil {
		return fmt.Errorf("announce skipped execution: %w", err)
	}
	return nil
}
