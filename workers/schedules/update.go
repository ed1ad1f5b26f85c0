package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/schedules/definition"
)

// errStale says that a schedule was changed between being read and being
// written.
var errStale = errors.New("the schedule was changed meanwhile")

// updateTries bounds how often an update is begun anew because of another one.
const updateTries = 5

// Update merges a patch into a schedule. It fails with not_found, with
// invalid_request naming every bad field, and with conflict: for a name that
// exists, for pausing a completed schedule, or when others keep changing it.
func (s *Service) Update(ctx context.Context, account, id string, patch definition.Patch) (Schedule, error) {
	for range updateTries {
		updated, err := s.tryUpdate(ctx, account, id, patch)
		if !errors.Is(err, errStale) {
			return updated, err
		}
	}
	return Schedule{}, &apierror.Error{Code: decision.Conflict, Message: "The schedule is being changed by others.", Cause: errStale}
}

// tryUpdate checks the patch outside any transaction, because the check may
// wait for a name lookup, and writes if nothing has changed since.
func (s *Service) tryUpdate(ctx context.Context, account, id string, patch definition.Patch) (Schedule, error) {
	old, err := s.Get(ctx, account, id)
	if err != nil {
		return Schedule{}, err
	}
	if old.Definition, err = s.opened(id, old.Definition, old.sealed); err != nil {
		return Schedule{}, err
	}
	d, err := patch.Apply(old.Definition)
	if err != nil {
		return Schedule{}, err
	}
	d.Webhook.Keep(old.Definition.Webhook)
	p, err := d.Complete(s.checkOther(ctx, old.Definition.Webhook))
	if err != nil {
		return Schedule{}, err
	}
	change := transition{from: old.Status, asked: patch.Status, next: old.Next, timed: !d.Schedule.Same(old.Definition.Schedule)}
	status, next, err := change.resolve(func() (time.Time, error) { return d.Schedule.Future(p, s.now()) })
	if err != nil {
		return Schedule{}, err
	}
	var updated Schedule
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		if updated, err = s.write(ctx, tx, old, d, status, next, change.keepsNext()); err != nil {
			return err
		}
		if err := recordTx(ctx, tx, account, "schedule.update", id, &old, &updated); err != nil {
			return err
		}
		if status == Paused && old.Status != Paused {
			return s.dropWaiting(ctx, tx, id)
		}
		return nil
	})
	return updated, err
}

// checkOther checks every address but the one that the schedule has already:
// a rename must not fail, or wait, because of somebody's name server.
func (s *Service) checkOther(ctx context.Context, old *definition.Webhook) definition.URLCheck {
	return func(url string) error {
		if old != nil && url == old.URL {
			return nil
		}
		return s.CheckURL(ctx, url)
	}
}

// write stores the new state if version and status are still the old ones. A
// next time that does not change is left alone, because a worker may have moved
// it on.
func (s *Service) write(ctx context.Context, tx pgx.Tx, old Schedule, d definition.Definition, status string, next *time.Time, keep bool) (Schedule, error) {
	open, sealed, err := s.sealed(ctx, tx, old.ID, d)
	if err != nil {
		return Schedule{}, err
	}
	rows, _ := tx.Query(ctx, `
		UPDATE schedules SET name = $3, type = $4, tags = $5, definition = $6, version = version + 1, updated_at = $7,
			status = $8, next_fire_at = CASE WHEN $10 THEN next_fire_at ELSE $9 END, held_fire_at = CASE WHEN $10 THEN held_fire_at END,
			sealed_headers = $12
		WHERE id = $1 AND version = $2 AND status = $11
		RETURNING `+scheduleColumns,
		old.ID, old.Version, d.Name, d.Type, d.Tags, open, s.now(), status, next, keep, old.Status, sealed)
	updated, err := pgx.CollectExactlyOneRow(rows, scanSchedule)
	if errors.Is(err, pgx.ErrNoRows) {
		return Schedule{}, errStale
	}
	return updated, stored(err)
}

// dropWaiting ends the runs that wait behind another one: a pause stops them
// too.
func (s *Service) dropWaiting(ctx context.Context, tx pgx.Tx, schedule string) error {
	now := s.now()
	_, err := tx.Exec(ctx, `
		UPDATE schedule_executions SET status = 'skipped', finished_at = $2, logs = logs || $3::text
		WHERE schedule_id = $1 AND status = 'waiting'`, schedule, now, logLine(now, "skipped: the schedule was paused"))
	if err != nil {
		return fmt.Errorf("drop waiting executions: %w", err)
	}
	return nil
}
