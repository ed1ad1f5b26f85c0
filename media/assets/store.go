package assets

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
)

const columns = `id, owner, account, kind, title, status, source_url, source_id, stream_id, session_id, start_ms, end_ms,
	precise, cut, plan, file_id, format, duration_ms, width, height, video_codec, audio_codec, file_size, error_code, error_message,
	metadata, created_at, updated_at, retry_until`

// save inserts a, or writes everything that may change of it.
func save(ctx context.Context, tx pgx.Tx, a Asset) error {
	_, err := tx.Exec(ctx, `INSERT INTO media_assets (`+columns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)
		ON CONFLICT (id) DO UPDATE SET title = excluded.title, status = excluded.status, stream_id = excluded.stream_id,
			start_ms = excluded.start_ms, end_ms = excluded.end_ms, cut = excluded.cut, file_id = excluded.file_id, format = excluded.format,
			duration_ms = excluded.duration_ms, width = excluded.width, height = excluded.height,
			video_codec = excluded.video_codec, audio_codec = excluded.audio_codec, file_size = excluded.file_size,
			error_code = excluded.error_code, error_message = excluded.error_message,
			metadata = excluded.metadata, updated_at = excluded.updated_at, retry_until = excluded.retry_until`,
		a.ID, a.Owner, a.Account, a.Kind, a.Title, a.Status, a.SourceURL, a.SourceID, a.StreamID, a.SessionID, a.StartMS, a.EndMS,
		a.Precise, a.Cut, a.Plan, a.FileID, a.Format, a.DurationMS, a.Width, a.Height, a.VideoCodec, a.AudioCodec, a.FileSize, a.ErrorCode, a.ErrorMessage,
		a.Metadata, a.CreatedAt, a.UpdatedAt, a.RetryUntil)
	if err != nil {
		return fmt.Errorf("save asset: %w", err)
	}
	return nil
}

// one reads the asset that where, a condition on args, finds.
func one(ctx context.Context, db postgres.DB, where string, args ...any) (Asset, error) {
	rows, _ := db.Query(ctx, `SELECT `+columns+` FROM media_assets WHERE `+where, args...)
	a, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Asset])
	return a, postgres.NotFound(err, "read asset")
}

// many reads the assets that a condition finds, in the order that it ends with.
func many(ctx context.Context, db postgres.DB, sql string, args ...any) ([]Asset, error) {
	rows, _ := db.Query(ctx, `SELECT `+columns+` FROM media_assets WHERE `+sql, args...)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Asset])
	if err != nil {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	return found, nil
}

// get reads one asset of owner and of this kind, or not_found.
func get(ctx context.Context, db postgres.DB, owner string, kind Kind, id string) (Asset, error) {
	return one(ctx, db, `owner = $1 AND kind = $2 AND id = $3`, owner, kind, id)
}

// List is how assets of a kind are listed: newest first, by title if asked for.
var List = paging.Table[Asset]{
	Columns: columns, From: "media_assets", Scan: pgx.RowToStructByName[Asset],
	Sorts: []paging.Sort[Asset]{
		paging.Time("created_at", "created_at", func(a Asset) time.Time { return a.CreatedAt }),
		paging.Text("title", "title", func(a Asset) string { return a.Title }),
	},
	ID: "id", IDOf: func(a Asset) string { return a.ID },
	Created: "created_at", Name: "title", Param: "title",
}

// list reads a page of owner's assets.
func list(ctx context.Context, db postgres.DB, owner string, f Filter) (paging.List[Asset], error) {
	return List.Read(ctx, db, f.Page, `owner = $1 AND kind = $2 AND ($3::text[] IS NULL OR status = ANY ($3)) AND ($4 = '' OR stream_id = $4)`,
		owner, f.Kind, f.Statuses, f.StreamID)
}

// countProcessing is the length of the processing queue: assets that have a source to
// fetch.
func countProcessing(ctx context.Context, tx pgx.Tx, owner string) (line, error) {
	return countLine(ctx, tx, owner, `SELECT count(*), count(*) FILTER (WHERE owner = $1) FROM media_assets WHERE status = 'processing' AND source_url <> ''`)
}

// waitingClips returns the clips that wait for source, locked.
func waitingClips(ctx context.Context, tx pgx.Tx, source string) ([]Asset, error) {
	return many(ctx, tx, `source_id = $1 AND status = 'processing' AND file_id = '' ORDER BY id FOR UPDATE`, source)
}

// release removes an asset's row, and its file when nobody else refers to it.
// Two that share a file and go at once wait for each other at the file's row.
func release(ctx context.Context, tx pgx.Tx, a Asset) error {
	if err := lockFile(ctx, tx, a.FileID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM media_files WHERE id IN (SELECT file_id FROM media_renditions WHERE asset_id = $1)`, a.ID)
	if err != nil {
		return fmt.Errorf("delete renditions: %w", err)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM media_assets WHERE id = $1`, a.ID); err != nil {
		return fmt.Errorf("delete asset: %w", err)
	}
	return dropFile(ctx, tx, a.FileID)
}

// lockFile locks the row of a file, if there is one.
func lockFile(ctx context.Context, tx pgx.Tx, id string) error {
	if _, err := tx.Exec(ctx, `SELECT FROM media_files WHERE id = $1 FOR UPDATE`, id); err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	return nil
}

// dropFile removes a file that no asset refers to any more. The caller has locked it.
func dropFile(ctx context.Context, tx pgx.Tx, id string) error {
	_, err := tx.Exec(ctx, `DELETE FROM media_files f WHERE id = $1
		AND NOT EXISTS (SELECT FROM media_assets a WHERE a.file_id = f.id)`, id)
	if err != nil {
		return fmt.Errorf("delete file: %w", err)
	}
	return nil
}

// now is a clock's time at the precision of the database and of the API.
func now(clock func() time.Time) time.Time { return clock().UTC().Truncate(time.Millisecond) }
