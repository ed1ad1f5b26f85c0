package schedules

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// While an account is suspended its schedules make no runs and its executions no attempts. A
// schedule that comes due keeps that time in held_fire_at, once: it is not looked at again
// before the account is resumed, however long that takes. Whoever resumes the account holds
// its row, and so do claims that hold schedules back: one of the two sees what the other did.

// holdSuspended takes schedules of suspended accounts out of due, which the transaction has
// claimed, and returns the rest.
func holdSuspended(ctx context.Context, tx pgx.Tx, due []dueSchedule) ([]dueSchedule, error) {
	accounts := make([]string, len(due))
	for i, d := range due {
		accounts[i] = d.Account
	}
	rows, _ := tx.Query(ctx, `SELECT id FROM accounts WHERE id = ANY ($1) AND suspended_at IS NOT NULL ORDER BY id FOR SHARE`, accounts)
	suspended, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for suspended accounts: %w", err)
	}
	if len(suspended) == 0 {
		return due, nil
	}
	var held []string
	due = slices.DeleteFunc(due, func(d dueSchedule) bool {
		if !slices.Contains(suspended, d.Account) {
			return false
		}
		held = append(held, d.ID)
		return true
	})
	if _, err := tx.Exec(ctx, `UPDATE schedules SET held_fire_at = next_fire_at, next_fire_at = NULL WHERE id = ANY ($1)`, held); err != nil {
		return nil, fmt.Errorf("hold schedules back: %w", err)
	}
	return due, nil
}

// ReleaseTx lets the schedules of an account go on that were held back while it was
// suspended: as after a time without workers, each by its catch-up policy. The caller
// holds the account's row.
func (s *Service) ReleaseTx(ctx context.Context, tx pgx.Tx, account string) error {
	_, err := tx.Exec(ctx, `UPDATE schedules SET held_fire_at = NULL,
			next_fire_at = CASE WHEN status = 'active' THEN coalesce(next_fire_at, held_fire_at) END
		WHERE account_id = $1 AND held_fire_at IS NOT NULL`, account)
	if err != nil {
		return fmt.Errorf("release schedules: %w", err)
	}
	return nil
}

// suspendedPause is how long an execution of a suspended account waits before its job looks
// again.
const suspendedPause = time.Minute

// putOffSuspended makes those of the executions due later whose account is suspended. Their
// leases last until then, so that they are not taken for lost.
func (s *Service) putOffSuspended(ctx context.Context, executions []string, now time.Time) error {
	later := now.Add(suspendedPause)
	_, err := s.DB.Exec(ctx, `
		UPDATE schedule_executions e SET run_at = $3, lease_until = $4
		FROM schedules s JOIN accounts a ON a.id = s.account_id
		WHERE e.id = ANY ($1) AND s.id = e.schedule_id AND a.suspended_at IS NOT NULL AND e.status = 'executing' AND e.run_at <= $2 AND NOT e.running`,
		executions, now, later, later.Add(pickup))
	if err != nil {
		return fmt.Errorf("put executions of suspended accounts off: %w", err)
	}
	return nil
}
