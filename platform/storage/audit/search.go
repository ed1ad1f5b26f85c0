package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Search is a Filter that knows of several actors and of times.
type Search struct {
	Filter
	Actors   []string  // any of them; nil: not looked at
	From, To time.Time // To is not included; zero: not bounded
}

const searched = ` FROM audit_log WHERE ($1 = '' OR account_id = $1) AND ($2 = '' OR actor = $2) AND ($3 = '' OR action = $3) AND ($4 = '' OR target = $4)
	AND ($5::text[] IS NULL OR actor = ANY ($5)) AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)`

const entryColumns = `id, at, actor, address, request_id, account_id, action, target, before, after`

// args are the parameters of searched.
func (q Search) args(more ...any) []any {
	orNil := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	return append([]any{q.Account, q.Actor, q.Action, q.Target, q.Actors, orNil(q.From), orNil(q.To)}, more...)
}

// Find returns page p of the entries that q is about, newest first, and their number.
func Find(ctx context.Context, db postgres.DB, q Search, p paging.Page) (list []Entry, total int, err error) {
	rows, _ := db.Query(ctx, `SELECT `+entryColumns+searched+` ORDER BY id DESC LIMIT $8 OFFSET $9`, q.args(p.Limit, p.Offset)...)
	if list, err = pgx.CollectRows(rows, scanEntry); err == nil {
		err = db.QueryRow(ctx, `SELECT count(*)`+searched, q.args()...).Scan(&total)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("search the audit log: %w", err)
	}
	return list, total, nil
}

// MaxExport is how many entries one export has at most.
const MaxExport = 100_000

// exportAtOnce is how many entries are held at a time.
const exportAtOnce = 1000

// Each calls do with the entries that q is about, newest first, a thousand at a time and
// MaxExport at most. more says that there are others. It holds no connection while do runs.
func Each(ctx context.Context, db postgres.DB, q Search, do func([]Entry) error) (more bool, err error) {
	last := int64(1<<63 - 1)
	for n := 0; n < MaxExport; {
		rows, _ := db.Query(ctx, `SELECT `+entryColumns+searched+` AND id < $8 ORDER BY id DESC LIMIT $9`, q.args(last, exportAtOnce)...)
		list, err := pgx.CollectRows(rows, scanEntry)
		if err != nil {
			return false, fmt.Errorf("export the audit log: %w", err)
		}
		if len(list) == 0 {
			return false, nil
		}
		if err := do(list); err != nil || len(list) < exportAtOnce {
			return false, err
		}
		n, last = n+len(list), list[len(list)-1].ID
	}
	return true, nil
}

// scanEntry reads a row of entryColumns.
func scanEntry(row pgx.CollectableRow) (Entry, error) {
	e, err := pgx.RowToStructByPos[Entry](row)
	e.At = e.At.UTC()
	return e, err
}

// lookedAt is among how many of the latest entries Actions looks.
const lookedAt = 5000

// Actions are those of the latest entries of an account, or of all where it is empty, in the
// order of their names.
func Actions(ctx context.Context, db postgres.DB, account string) ([]string, error) {
	rows, _ := db.Query(ctx, `SELECT DISTINCT action FROM (SELECT action FROM audit_log WHERE $1 = '' OR account_id = $1 ORDER BY id DESC LIMIT $2) a ORDER BY action`, account, lookedAt)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list the actions of the audit log: %w", err)
	}
	return list, nil
}
