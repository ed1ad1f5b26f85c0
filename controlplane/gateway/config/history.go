package config

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Entry is one version in the history.
type Entry struct {
	Number    int64     `json:"version"`
	Author    string    `json:"author"`
	Note      string    `json:"note,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	Changes   int       `json:"changes"` // against the version before it
}

// History returns at most limit versions that are older than before, newest
// first, and whether there are more. before 0: from the newest on.
func (s Store) History(ctx context.Context, before int64, limit int) (list []Entry, more bool, err error) {
	l, err := s.Page(ctx, before, paging.Page{Limit: limit})
	return l.Data, l.Pagination.HasMore, err
}

// Versions is how versions are listed: newest first.
var Versions = paging.Table[Entry]{
	Columns: `version, author, note, created_at, changes`, From: "config_versions", Scan: pgx.RowToStructByPos[Entry],
	Sorts:   []paging.Sort[Entry]{paging.Number("version", "version", func(e Entry) int64 { return e.Number })},
	Created: "created_at",
	Log:     true,
}

// Page returns a page of the versions that are older than before; 0: of all.
func (s Store) Page(ctx context.Context, before int64, p paging.Page) (paging.List[Entry], error) {
	return Versions.Read(ctx, s.DB, p, `$1::bigint = 0 OR version < $1`, before)
}

// Get returns one version, or not_found.
func (s Store) Get(ctx context.Context, number int64) (Version, error) {
	return oneVersion(ctx, s.DB, `WHERE version = $1`, number)
}

// Before returns the version that number replaced: its number is 0, and it is
// empty, when there was none.
func (s Store) Before(ctx context.Context, number int64) (Version, error) {
	v, err := oneVersion(ctx, s.DB, `WHERE version < $1 ORDER BY version DESC LIMIT 1`, number)
	if apierror.Code(err) == decision.NotFound {
		return Version{}, nil
	}
	return v, err
}

func oneVersion(ctx context.Context, db postgres.DB, where string, args ...any) (Version, error) {
	rows, _ := db.Query(ctx, `SELECT version, author, note, created_at, document FROM config_versions `+where, args...)
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Version])
	if err != nil {
		return Version{}, postgres.NotFound(err, "read configuration")
	}
	return v, nil
}
