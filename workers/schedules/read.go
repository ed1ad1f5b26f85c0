package schedules

import (
	"context"
	"errors"
	"time"

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

// Schedules is how schedules are listed: newest first. Their names have no index by which
// they could be in order: every run of a schedule would write to it.
var Schedules = paging.Table[Schedule]{
	Columns: scheduleColumns, From: "schedules", Scan: scanSchedule,
	Sorts: []paging.Sort[Schedule]{paging.Time("createdAt", "created_at", func(s Schedule) time.Time { return s.CreatedAt })},
	ID:    "id", IDOf: func(s Schedule) string { return s.ID },
	Created: "created_at", Name: "name", Param: "name", Camel: true,
}

// Page returns a page of an account's schedules.
func (s *Service) Page(ctx context.Context, account string, f Filter, p paging.Page) (paging.List[Schedule], error) {
	return Schedules.Read(ctx, s.DB, p, `account_id = $1 AND ($2 = '' OR status = $2) AND ($3 = '' OR type = $3) AND ($4 = '' OR $4 = ANY (tags))`,
		account, f.Status, f.Type, f.Tag)
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
