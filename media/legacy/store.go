package legacy

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Connection is one row of media_migrations.
type Connection struct {
	Owner       string    `db:"owner"`
	Account     string    `db:"account"`
	Plan        string    `db:"plan"`
	BaseURL     string    `db:"base_url"`
	Token       []byte    `db:"token"` // sealed
	State       string    `db:"import_state"`
	Error       string    `db:"import_error"`
	ConnectedAt time.Time `db:"connected_at"`
	UpdatedAt   time.Time `db:"updated_at"`
}

// The states of an import.
const (
	stateNone    = "none"
	stateRunning = "running"
	stateDone    = "done"
	stateFailed  = "failed"
)

// By is whose connection it is.
func (c Connection) By() owner.Owner {
	return owner.Owner{ID: c.Owner, Account: c.Account, Plan: c.Plan}
}

// save stores a connection; one that is there is replaced, and what was imported
// through it stays known.
func save(ctx context.Context, db postgres.DB, c Connection) error {
	_, err := db.Exec(ctx, `INSERT INTO media_migrations (owner, account, plan, base_url, token, import_state, import_error, connected_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, 'none', '', $6, $6)
		ON CONFLICT (owner) DO UPDATE SET plan = excluded.plan, base_url = excluded.base_url, token = excluded.token,
			connected_at = excluded.connected_at, updated_at = excluded.updated_at`,
		c.Owner, c.Account, c.Plan, c.BaseURL, c.Token, c.ConnectedAt)
	if err != nil {
		return fmt.Errorf("save connection: %w", err)
	}
	return nil
}

// get reads the connection of owner, or not_found.
func get(ctx context.Context, db postgres.DB, owner string) (Connection, error) {
	rows, _ := db.Query(ctx, `SELECT owner, account, plan, base_url, token, import_state, import_error, connected_at, updated_at
		FROM media_migrations WHERE owner = $1`, owner)
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Connection])
	return c, postgres.NotFound(err, "read connection")
}

// begin moves the import to running; false: it is running already.
func begin(ctx context.Context, tx pgx.Tx, owner string, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `UPDATE media_migrations SET import_state = 'running', import_error = '', updated_at = $2
		WHERE owner = $1 AND import_state <> 'running'`, owner, now)
	if err != nil {
		return false, fmt.Errorf("begin import: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// end moves the import of owner to state. A connection that was cleaned up
// meanwhile stays gone.
func end(ctx context.Context, db postgres.DB, owner, state, problem string, now time.Time) error {
	_, err := db.Exec(ctx, `UPDATE media_migrations SET import_state = $2, import_error = $3, updated_at = $4 WHERE owner = $1`,
		owner, state, problem, now)
	if err != nil {
		return fmt.Errorf("end import: %w", err)
	}
	return nil
}

// remove forgets the connection of owner and, by its foreign key, what was
// imported through it.
func remove(ctx context.Context, db postgres.DB, owner string) error {
	if _, err := db.Exec(ctx, `DELETE FROM media_migrations WHERE owner = $1`, owner); err != nil {
		return fmt.Errorf("delete connection: %w", err)
	}
	return nil
}

// saveImported stores that a video is imported; false: it was before. A video that was
// refused is tried again.
func saveImported(ctx context.Context, tx pgx.Tx, owner string, v Video, vod, problem string) (bool, error) {
	tag, err := tx.Exec(ctx, `INSERT INTO media_migration_videos (owner, legacy_id, vod_id, duration_ms, file_size, error)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (owner, legacy_id) DO UPDATE SET vod_id = excluded.vod_id, error = excluded.error WHERE media_migration_videos.vod_id = ''`,
		owner, v.ID, vod, int64(v.Duration*1000), v.Size, problem)
	if err != nil {
		return false, fmt.Errorf("note video: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// eachImported calls f with each imported video, in the order of ids and with what
// became of it; of the videos called ids, or for nil of all. One row at a time is in memory.
func eachImported(ctx context.Context, db postgres.DB, owner string, ids []string, f func(Imported)) error {
	rows, err := db.Query(ctx, `SELECT m.legacy_id, m.vod_id, m.duration_ms, m.file_size, m.error,
			coalesce(a.status, '') AS status, coalesce(a.duration_ms, 0) AS here_duration_ms,
			coalesce(a.file_size, 0) AS here_file_size, coalesce(a.error_message, '') AS here_error
		FROM media_migration_videos m LEFT JOIN media_assets a ON a.id = m.vod_id
		WHERE m.owner = $1 AND ($2::text[] IS NULL OR m.legacy_id = ANY ($2)) ORDER BY m.legacy_id`, owner, ids)
	if err != nil {
		return fmt.Errorf("read import: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		t, err := pgx.RowToStructByName[Imported](rows)
		if err != nil {
			return fmt.Errorf("read import: %w", err)
		}
		f(t)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read import: %w", err)
	}
	return nil
}

// count is how far owner's import is.
func count(ctx context.Context, db postgres.DB, owner string) (Progress, error) {
	var total, processing, ready int
	err := db.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE a.status = 'processing'), count(*) FILTER (WHERE a.status = 'ready')
		FROM media_migration_videos m LEFT JOIN media_assets a ON a.id = m.vod_id WHERE m.owner = $1`, owner).Scan(&total, &processing, &ready)
	if err != nil {
		return Progress{}, fmt.Errorf("count import: %w", err)
	}
	return progress(total, processing, ready), nil
}
