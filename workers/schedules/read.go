package schedules

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Filter narrows a list of schedules. Empty members do not.
type Filter struct {
	Status string
	Type   string
	Tag    string
}

// Get returns one schedule of an account. It fails with not_found.
func (s *Service) Get(ctx context.Context, account, id string) (Schedule, error) {
	rows, _ := s.DB.Query(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE account_id = $1 AND id = $2`, account, id)
	found, err := pgx.CollectExactlyOneRow(rows, scanSchedule)
	return found, postgres.NotFound(err, "read schedule")
}

// List returns a page of an account's schedules, newest first, and how many
// there are in all.
func (s *Service) List(ctx context.Context, account string, f Filter, page paging.Page) ([]Schedule, int, error) {
	const where = ` FROM schedules WHERE account_id = $1 AND ($2 = '' OR status = $2) AND ($3 = '' OR type = $3)
		AND ($4 = '' OR $4 = ANY (tags))`
	var total int
	err := s.DB.QueryRow(ctx, `SELECT count(*)`+where, account, f.Status, f.Type, f.Tag).Scan(&total)
	if err != nil {
		return nil, 0, fmt.Errorf("count schedules: %w", err)
	}
	rows, _ := s.DB.Query(ctx, `SELECT `+scheduleColumns+where+` ORDER BY created_at DESC, id DESC LIMIT $5 OFFSET $6`,
		account, f.Status, f.Type, f.Tag, page.Limit, page.Offset)
	list, err := pgx.CollectRows(rows, scanSchedule)
	if err != nil {
		return nil, 0, fmt.Errorf("list schedules: %w", err)
	}
	return list, total, nil
}

// Delete removes a schedule with its history. An execution under way may still
// end, unrecorded. It fails with not_found.
func (s *Service) Delete(ctx context.Context, account, id string) error {
	for range deleteTries - 1 {
		if err := s.delete(ctx, account, id); !isDeadlock(err) {
			return err
		}
	}
	return s.delete(ctx, account, id)
}

// deleteTries is how often a deletion is tried: workers that begin several of
// the schedule's executions lock them in an order of their own.
const deleteTries = 3

func (s *Service) delete(ctx context.Context, account, id string) error {
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `DELETE FROM schedules WHERE account_id = $1 AND id = $2 RETURNING `+scheduleColumns, account, id)
		before, err := pgx.CollectExactlyOneRow(rows, scanSchedule)
		if err != nil {
			return err
		}
		return recordTx(ctx, tx, account, "schedule.delete", id, &before, nil)
	})
	return postgres.NotFound(err, "delete schedule")
}

func isDeadlock(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "40P01"
}
