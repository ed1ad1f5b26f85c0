package editor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Status is where a render is in its life.
type Status string

// The states of a render: the last three are its ends.
const (
	Queued    Status = "queued"
	Rendering Status = "rendering"
	Ready     Status = "ready"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Statuses lists every state.
var Statuses = []string{string(Queued), string(Rendering), string(Ready), string(Failed), string(Cancelled)}

// Render is one row of media_renders. Texts that do not apply are empty.
type Render struct {
	ID           string            `db:"id"`
	Owner        string            `db:"owner"`
	Account      string            `db:"account"`
	Plan         string            `db:"plan"`
	Title        string            `db:"title"`
	Metadata     map[string]string `db:"metadata"`
	Status       Status            `db:"status"`
	Progress     int               `db:"progress"` // percent
	Request      json.RawMessage   `db:"request"`  // an Input; null in lists
	DurationMS   int64             `db:"duration_ms"`
	Width        int               `db:"width"`
	Height       int               `db:"height"`
	ImageBytes   int64             `db:"image_bytes"` // of the request; they count as stored
	AssetID      string            `db:"asset_id"`    // of the video, once it is there
	Holder       string            `db:"holder"`      // the attempt that works on it
	ErrorCode    decision.Code     `db:"error_code"`
	ErrorMessage string            `db:"error_message"`
	CreatedAt    time.Time         `db:"created_at"`
	UpdatedAt    time.Time         `db:"updated_at"`
}

// ended reports whether nothing more becomes of r.
func (r Render) ended() bool { return r.Status != Queued && r.Status != Rendering }

const columns = `id, owner, account, plan, title, metadata, status, progress, request, duration_ms, width, height, image_bytes,
	asset_id, holder, error_code, error_message, created_at, updated_at`

// insert stores a new render.
func insert(ctx context.Context, tx pgx.Tx, r Render) error {
	_, err := tx.Exec(ctx, `INSERT INTO media_renders (`+columns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
		r.ID, r.Owner, r.Account, r.Plan, r.Title, r.Metadata, r.Status, r.Progress, r.Request, r.DurationMS, r.Width, r.Height, r.ImageBytes,
		r.AssetID, r.Holder, r.ErrorCode, r.ErrorMessage, r.CreatedAt, r.UpdatedAt)
	if err != nil {
		return fmt.Errorf("insert render: %w", err)
	}
	return nil
}

// save writes what may change of r.
func save(ctx context.Context, tx pgx.Tx, r Render) error {
	_, err := tx.Exec(ctx, `UPDATE media_renders SET status = $2, progress = $3, asset_id = $4, holder = $5, error_code = $6, error_message = $7, updated_at = $8
		WHERE id = $1`, r.ID, r.Status, r.Progress, r.AssetID, r.Holder, r.ErrorCode, r.ErrorMessage, r.UpdatedAt)
	if err != nil {
		return fmt.Errorf("save render: %w", err)
	}
	return nil
}

// remove deletes a render that has ended, and the images that are kept with it. The video
// that came of it stays.
func remove(ctx context.Context, tx pgx.Tx, id string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM media_renders WHERE id = $1`, id); err != nil {
		return fmt.Errorf("delete render: %w", err)
	}
	return nil
}

// one reads the render that where, a condition on args, finds.
func one(ctx context.Context, db postgres.DB, where string, args ...any) (Render, error) {
	rows, _ := db.Query(ctx, `SELECT `+columns+` FROM media_renders WHERE `+where, args...)
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Render])
	return r, postgres.NotFound(err, "read render")
}

// claim gives a render that is under way to an attempt; false: it is not any more.
func claim(ctx context.Context, db postgres.DB, id, holder string, at time.Time) (bool, error) {
	tag, err := db.Exec(ctx, `UPDATE media_renders SET status = 'rendering', progress = 0, holder = $2, updated_at = $3
		WHERE id = $1 AND status IN ('queued', 'rendering')`, id, holder, at)
	if err != nil {
		return false, fmt.Errorf("claim render: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// advance writes the progress of an attempt; false: the render is not its any more.
func advance(ctx context.Context, db postgres.DB, id, holder string, progress int, at time.Time) (bool, error) {
	tag, err := db.Exec(ctx, `UPDATE media_renders SET progress = $3, updated_at = $4 WHERE id = $1 AND holder = $2 AND status = 'rendering'`, id, holder, progress, at)
	if err != nil {
		return false, fmt.Errorf("write progress: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// requeue gives back a render whose attempt has failed and is to be tried again.
func requeue(ctx context.Context, db postgres.DB, id, holder string, at time.Time) error {
	_, err := db.Exec(ctx, `UPDATE media_renders SET status = 'queued', progress = 0, holder = '', updated_at = $3 WHERE id = $1 AND holder = $2 AND status = 'rendering'`, id, holder, at)
	if err != nil {
		return fmt.Errorf("requeue render: %w", err)
	}
	return nil
}

// waiting counts all renders that are under way, and those of an owner, $1.
const waiting = `SELECT count(*), count(*) FILTER (WHERE owner = $1) FROM media_renders WHERE status IN ('queued', 'rendering')`

// renders is how renders are listed: newest first, without what was asked for.
var renders = paging.Table[Render]{
	Columns: `id, owner, account, plan, title, metadata, status, progress, 'null'::jsonb AS request, duration_ms, width, height, image_bytes,
		asset_id, holder, error_code, error_message, created_at, updated_at`,
	From: "media_renders", Scan: pgx.RowToStructByName[Render],
	Sorts: []paging.Sort[Render]{paging.Time("created_at", "created_at", func(r Render) time.Time { return r.CreatedAt })},
	ID:    "id", IDOf: func(r Render) string { return r.ID },
	Created: "created_at",
}

// list reads a page of owner's renders.
func list(ctx context.Context, db postgres.DB, owner string, statuses []string, p paging.Page) (paging.List[Render], error) {
	return renders.Read(ctx, db, p, `owner = $1 AND ($2::text[] IS NULL OR status = ANY ($2))`, owner, statuses)
}
