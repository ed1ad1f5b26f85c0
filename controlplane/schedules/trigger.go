package schedules

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/audit"
	"sluice.dev/sluice/controlplane/postgres"
	"sluice.dev/sluice/filters/decision"
)

// Trigger makes an execution at once, whatever the timing and whatever else is
// running, and leaves the next run alone. It returns the execution's id. A key
// that is not empty makes the call repeatable. It fails with not_found, and
// with conflict for a completed schedule.
func (s *Service) Trigger(ctx context.Context, account, id, key string) (string, error) {
	now := s.now()
	e := execution{id: newID(executionPrefix, now), schedule: id, status: Executing, note: "triggered by hand", executedAt: now}
	if key != "" {
		e.key = &key
	}
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		var status string
		err := tx.QueryRow(ctx, `SELECT status FROM schedules WHERE account_id = $1 AND id = $2 FOR KEY SHARE`, account, id).Scan(&status)
		if err != nil {
			return postgres.NotFound(err, "read schedule")
		}
		if status == Completed {
			return controlplane.Errorf(decision.Conflict, "A completed schedule cannot be triggered.")
		}
		inserted, err := insertExecutions(ctx, tx, []execution{e})
		if err != nil {
			return err
		}
		if !inserted[e.id] {
			return tx.QueryRow(ctx, `SELECT id FROM schedule_executions WHERE schedule_id = $1 AND idempotency_key = $2`, id, key).Scan(&e.id)
		}
		err = audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "schedule.trigger", Target: id, After: map[string]string{"execution": e.id}})
		if err != nil {
			return err
		}
		return s.enqueue(ctx, tx, []string{e.id})
	})
	if err != nil {
		return "", fmt.Errorf("trigger schedule: %w", postgres.Unreachable(err))
	}
	return e.id, nil
}
