package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/ids"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Trigger makes an execution at once, whatever the timing and whatever else is
// running, and leaves the next run alone. It returns the execution's id. It fails
// with not_found, with conflict for a completed schedule, and with
// rate_limit_exceeded when as many triggered runs as may be are pending.
func (s *Service) Trigger(ctx context.Context, account, id string) (string, error) {
	now := s.now()
	if err := s.refuse(ctx, account, id, now); err != nil {
		return "", err
	}
	e := execution{id: ids.New(executionPrefix, now), schedule: id, status: Executing, note: "triggered by hand", executedAt: now}
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		var status string
		err := tx.QueryRow(ctx, `SELECT status FROM schedules WHERE account_id = $1 AND id = $2 FOR KEY SHARE`, account, id).Scan(&status)
		if err != nil {
			return postgres.NotFound(err, "read schedule")
		}
		if status == Completed {
			return apierror.Errorf(decision.Conflict, "A completed schedule cannot be triggered.")
		}
		if _, err := insertExecutions(ctx, tx, []execution{e}); err != nil {
			return err
		}
		err = audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "schedule.trigger", Target: id, After: map[string]string{"execution": e.id}})
		if err != nil {
			return err
		}
		priority, err := s.admit(ctx, tx, account, e)
		if err != nil {
			return err
		}
		return s.enqueue(ctx, tx, []started{{id: e.id, account: account, priority: priority}})
	})
	if err != nil {
		return "", fmt.Errorf("trigger schedule: %w", err)
	}
	return e.id, nil
}

// triggerRetry is after how many seconds whoever has too much pending may try again,
// and refusedFor for how long those who try at once are refused from memory.
const (
	triggerRetry = 5
	refusedFor   = time.Second
)

// refuse is the error of pending, read at most once in refusedFor by each process: of an
// account that may have no more, for all its schedules together.
func (s *Service) refuse(ctx context.Context, account, schedule string, now time.Time) error {
	keys := [...]string{account, account + "/" + schedule}
	for _, key := range keys {
		if err := s.refused.Last(key, now); err != nil {
			return err
		}
	}
	all, err := s.pending(ctx, s.DB, account, schedule)
	if apierror.Code(err) == decision.RateLimited {
		key := keys[1]
		if all >= s.MaxTriggered {
			key = keys[0]
		}
		s.refused.Keep(key, err, now, now.Add(refusedFor))
	}
	return err
}

// admit counts a triggered run among those of its account, and returns the priority
// of its job. It looks at no more rows than may be pending, and waits for nobody.
func (s *Service) admit(ctx context.Context, tx pgx.Tx, account string, e execution) (int, error) {
	_, err := tx.Exec(ctx, `DELETE FROM schedule_triggers WHERE execution_id IN (
		SELECT t.execution_id FROM schedule_triggers t WHERE t.account_id = $1
			AND (SELECT x.status FROM schedule_executions x WHERE x.id = t.execution_id) <> 'executing' FOR UPDATE OF t SKIP LOCKED)`, account)
	if err != nil {
		return 0, fmt.Errorf("drop triggers that have ended: %w", err)
	}
	all, err := s.pending(ctx, tx, account, e.schedule)
	if err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO schedule_triggers (execution_id, schedule_id, account_id) VALUES ($1, $2, $3)`, e.id, e.schedule, account)
	if err != nil {
		return 0, fmt.Errorf("count a trigger: %w", err)
	}
	if all >= firstRuns {
		return Second, nil
	}
	return First, nil
}

// pending counts the triggered runs of an account that have not ended. It fails with
// rate_limit_exceeded when the account, or the schedule, may have no more; all is right then too.
func (s *Service) pending(ctx context.Context, db postgres.DB, account, schedule string) (all int, err error) {
	var same int
	// A scalar subquery looks each row up; a join might read every run of everybody.
	err = db.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE t.schedule_id = $2) FROM schedule_triggers t WHERE t.account_id = $1
		AND (SELECT x.status FROM schedule_executions x WHERE x.id = t.execution_id) = 'executing'`, account, schedule).Scan(&all, &same)
	if err != nil {
		return 0, fmt.Errorf("count triggers: %w", err)
	}
	each := max(1, s.MaxTriggered/5)
	if all >= s.MaxTriggered || same >= each {
		return all, &apierror.Error{Code: decision.RateLimited, RetryAfter: triggerRetry,
			Message: fmt.Sprintf("Too many triggered runs have not ended: at most %d of a schedule and %d of an account may be pending.", each, s.MaxTriggered)}
	}
	return all, nil
}
