package chapters

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/storage/postgres"
)

// DetectInput is the body of POST /v1/chapters/detect.
type DetectInput struct {
	AssetID   string   `json:"asset_id"`
	MinLength *float64 `json:"min_length"` // seconds, of a chapter; absent: 30
}

// Detection is the last search for chapters of an asset.
type Detection struct {
	AssetID   string       `json:"asset_id"`
	Status    string       `json:"status"` // processing, ready or failed
	MinLength float64      `json:"min_length"`
	Error     *FailureView `json:"error"`
	CreatedAt time.Time    `json:"created_at"`
	UpdatedAt time.Time    `json:"updated_at"`
}

// FailureView says why a search failed.
type FailureView struct {
	Code    decision.Code `json:"code"`
	Message string        `json:"message"`
}

// search is one row of media_chapter_searches.
type search struct {
	AssetID      string        `db:"asset_id"`
	ID           string        `db:"id"`
	Owner        string        `db:"owner"`
	Status       string        `db:"status"`
	LeastMS      int64         `db:"least_ms"`
	ErrorCode    decision.Code `db:"error_code"`
	ErrorMessage string        `db:"error_message"`
	CreatedAt    time.Time     `db:"created_at"`
	UpdatedAt    time.Time     `db:"updated_at"`
}

// view shows a search.
func (s search) view() Detection {
	d := Detection{AssetID: s.AssetID, Status: s.Status, MinLength: seconds(s.LeastMS), CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC()}
	if s.Status == "failed" {
		d.Error = &FailureView{s.ErrorCode, s.ErrorMessage}
	}
	return d
}

// lookup reads the search that a condition finds, or not_found.
func lookup(ctx context.Context, db postgres.DB, where string, args ...any) (search, error) {
	rows, _ := db.Query(ctx, `SELECT asset_id, id, owner, status, least_ms, error_code, error_message, created_at, updated_at FROM media_chapter_searches WHERE `+where, args...)
	s, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[search])
	return s, postgres.NotFound(err, "read search for chapters")
}

// save writes a search in place of the one before.
func (s search) save(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO media_chapter_searches (asset_id, id, owner, status, least_ms, error_code, error_message, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (asset_id) DO UPDATE SET id = excluded.id, status = excluded.status, least_ms = excluded.least_ms, error_code = excluded.error_code,
			error_message = excluded.error_message, created_at = excluded.created_at, updated_at = excluded.updated_at`,
		s.AssetID, s.ID, s.Owner, s.Status, s.LeastMS, s.ErrorCode, s.ErrorMessage, s.CreatedAt, s.UpdatedAt)
	if err != nil {
		return fmt.Errorf("save search for chapters: %w", err)
	}
	return nil
}

// Tend fails searches whose job is gone, as it is when workers were killed in each of its
// attempts. It returns how many.
func (v Service) Tend(ctx context.Context) (int64, error) {
	tag, err := v.Assets.DB.Exec(ctx, `UPDATE media_chapter_searches s SET status = 'failed', error_code = $1, error_message = $2, updated_at = $3
		WHERE status = 'processing' AND NOT EXISTS (SELECT FROM river_job j WHERE j.kind = $4 AND j.args->>'search_id' = s.id
			AND j.state IN ('available', 'pending', 'retryable', 'running', 'scheduled'))`,
		decision.Internal, "The search was interrupted too often.", v.Assets.Clock(), DetectArgs{}.Kind())
	if err != nil {
		return 0, fmt.Errorf("fail lost searches: %w", err)
	}
	return tag.RowsAffected(), nil
}
