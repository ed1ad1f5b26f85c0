package schedules

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/ids"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/schedules/definition"
)

// Create stores a new, active schedule. It fails with invalid_request, naming
// every bad field, and with conflict when the account has a schedule of that name.
func (s *Service) Create(ctx context.Context, account string, d definition.Definition) (Schedule, error) {
	p, err := d.Complete(s.checkURL(ctx))
	if err != nil {
		return Schedule{}, err
	}
	now := s.now()
	next, err := d.Schedule.Future(p, now)
	if err != nil {
		return Schedule{}, err
	}
	var made Schedule
	id := ids.New(schedulePrefix, now)
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) (err error) {
		open, sealed, err := s.sealed(ctx, tx, id, d)
		if err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `
			INSERT INTO schedules (id, account_id, name, type, tags, status, definition, sealed_headers, next_fire_at, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, 'active', $6, $7, $8, $9, $9)
			RETURNING `+scheduleColumns,
			id, account, d.Name, d.Type, d.Tags, open, sealed, next, now)
		if made, err = pgx.CollectExactlyOneRow(rows, scanSchedule); err != nil {
			return err
		}
		return recordTx(ctx, tx, account, "schedule.create", made.ID, nil, &made)
	})
	return made, stored(err)
}

// checkURL binds the URL check to a request.
func (s *Service) checkURL(ctx context.Context) definition.URLCheck {
	return func(url string) error { return s.CheckURL(ctx, url) }
}

// stored turns an error of writing a schedule into what the caller may see.
func stored(err error) error {
	switch postgres.Constraint(err) {
	case "schedules_name_key":
		return &apierror.Error{Code: decision.Conflict, Message: "A schedule with this name exists already.",
			Details: []decision.Detail{{Field: "name", Issue: "exists already", Expected: "a name that no other schedule has"}}}
	case "schedules_account_fkey":
		return &apierror.Error{Code: decision.NotFound, Message: "The account does not exist.", Cause: err}
	}
	if err != nil {
		return fmt.Errorf("store schedule: %w", err)
	}
	return nil
}
