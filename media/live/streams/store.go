package streams

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
)

// state is a stream's status: that of one which waits for its publisher is stored as
// live, which is what programs of the release before know.
const state = `CASE WHEN started_from <> '' AND status = 'live' THEN 'starting' ELSE status END`

const columns = `id, owner, account, plan, playback_id, key_hash, key_hint, title, protocol, ` + state + ` AS status, playback_policy,
	recording, quality, bitrate_kbps, viewer_threshold, metadata, version, created_at, updated_at, started_from`

// stored is s as status and started_from have it.
func stored(s Stream) (status, from Status) {
	if s.Status == Starting {
		return Live, s.StartedFrom
	}
	return s.Status, ""
}

// insert stores a new stream.
func insert(ctx context.Context, tx pgx.Tx, s Stream) error {
	_, err := tx.Exec(ctx, `INSERT INTO media_streams (id, owner, account, plan, playback_id, key_hash, key_hint, title, protocol, status, playback_policy,
			recording, quality, bitrate_kbps, viewer_threshold, metadata, version, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
		s.ID, s.Owner, s.Account, s.Plan, s.PlaybackID, s.KeyHash, s.KeyHint, s.Title, s.Protocol, s.Status, s.PlaybackPolicy,
		s.Recording, s.Quality, s.BitrateKbps, s.Threshold, s.Metadata, s.Version, s.CreatedAt, s.UpdatedAt)
	if err != nil {
		return fmt.Errorf("insert stream: %w", err)
	}
	return nil
}

// get reads one stream of owner. suffix is "" or "FOR UPDATE".
func get(ctx context.Context, db postgres.DB, owner, id, suffix string) (Stream, error) {
	rows, _ := db.Query(ctx, `SELECT `+columns+` FROM media_streams WHERE owner = $1 AND id = $2 `+suffix, owner, id)
	return one(rows)
}

// ByPlayback reads the stream of a playback id, of any owner, or not_found.
func ByPlayback(ctx context.Context, db postgres.DB, playbackID string) (Stream, error) {
	rows, _ := db.Query(ctx, `SELECT `+columns+` FROM media_streams WHERE playback_id = $1`, playbackID)
	return one(rows)
}

// ByID reads a stream of any owner, or not_found.
func ByID(ctx context.Context, db postgres.DB, id string) (Stream, error) {
	rows, _ := db.Query(ctx, `SELECT `+columns+` FROM media_streams WHERE id = $1`, id)
	return one(rows)
}

// one takes the only row of a query, or not_found.
func one(rows pgx.Rows) (Stream, error) {
	s, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Stream])
	return s, postgres.NotFound(err, "read stream")
}

// update writes what may change of s, and moves its version and time on.
func update(ctx context.Context, tx pgx.Tx, s *Stream, now time.Time) error {
	s.Version++
	s.UpdatedAt = now
	status, from := stored(*s)
	_, err := tx.Exec(ctx, `UPDATE media_streams SET key_hash = $2, key_hint = $3, title = $4, protocol = $5, status = $6,
		playback_policy = $7, recording = $8, quality = $9, bitrate_kbps = $10, viewer_threshold = $11, metadata = $12, version = $13, updated_at = $14, plan = $15, started_from = $16
		WHERE id = $1`,
		s.ID, s.KeyHash, s.KeyHint, s.Title, s.Protocol, status,
		s.PlaybackPolicy, s.Recording, s.Quality, s.BitrateKbps, s.Threshold, s.Metadata, s.Version, s.UpdatedAt, s.Plan, from)
	if err != nil {
		return fmt.Errorf("update stream: %w", err)
	}
	return nil
}

// remove deletes a stream; its captions go with it, its sessions and recordings
// stay.
func remove(ctx context.Context, tx pgx.Tx, id string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM media_streams WHERE id = $1`, id); err != nil {
		return fmt.Errorf("delete stream: %w", err)
	}
	return nil
}

// List is how streams are listed: newest first, by title if asked for.
var List = paging.Table[Stream]{
	Columns: columns, From: "media_streams", Scan: pgx.RowToStructByName[Stream],
	Sorts: []paging.Sort[Stream]{
		paging.Time("created_at", "created_at", func(s Stream) time.Time { return s.CreatedAt }),
		paging.Text("title", "title", func(s Stream) string { return s.Title }),
	},
	ID: "id", IDOf: func(s Stream) string { return s.ID },
	Created: "created_at", Name: "title", Param: "title",
}

// list reads a page of owner's streams.
func list(ctx context.Context, db postgres.DB, owner string, f Filter) (paging.List[Stream], error) {
	return List.Read(ctx, db, f.Page, `owner = $1 AND ($2::text[] IS NULL OR `+state+` = ANY ($2))`, owner, f.Statuses)
}

// countOnAir counts owner's streams on air. It holds a lock until the transaction
// ends: of two starts at once, the second counts the first.
func countOnAir(ctx context.Context, tx pgx.Tx, owner string) (n int, err error) {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('media_streams ' || $1, 0))`, owner); err != nil {
		return 0, fmt.Errorf("lock owner's streams: %w", err)
	}
	err = tx.QueryRow(ctx, `SELECT count(*) FROM media_streams WHERE owner = $1 AND status IN ('live', 'paused')`, owner).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count streams on air: %w", err)
	}
	return n, nil
}

// openSession stores a session. A unique index keeps a stream from having two
// that are open.
func openSession(ctx context.Context, tx pgx.Tx, s Session) error {
	_, err := tx.Exec(ctx, `INSERT INTO media_sessions (id, owner, stream_id, started_at, engine) VALUES ($1, $2, $3, $4, $5)`,
		s.ID, s.Owner, s.StreamID, s.StartedAt, s.Engine)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	return nil
}

// closeSession ends the open session of a stream, and counts who has watched it. A
// clock that has gone back gives a session of no length, not a negative one.
func closeSession(ctx context.Context, tx pgx.Tx, streamID string, now time.Time) (Session, error) {
	rows, _ := tx.Query(ctx, `UPDATE media_sessions SET ended_at = greatest($2::timestamptz, started_at),
			total_viewers = (SELECT count(DISTINCT viewer) FROM media_views WHERE subject = $1 AND last_at >= started_at)
		WHERE stream_id = $1 AND ended_at IS NULL
		RETURNING id, owner, stream_id, started_at, ended_at, total_viewers, peak_viewers, engine`, streamID, now)
	s, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Session])
	if err != nil {
		return Session{}, fmt.Errorf("close session: %w", err)
	}
	return s, nil
}

// beginSession has the open session of a stream begin now, with a publisher.
func beginSession(ctx context.Context, tx pgx.Tx, streamID string, now time.Time) error {
	if _, err := tx.Exec(ctx, `UPDATE media_sessions SET engine = true, started_at = $2 WHERE stream_id = $1 AND ended_at IS NULL`, streamID, now); err != nil {
		return fmt.Errorf("begin session: %w", err)
	}
	return nil
}

// dropSession removes the open session of a stream to which nobody has published.
func dropSession(ctx context.Context, tx pgx.Tx, streamID string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM media_sessions WHERE stream_id = $1 AND ended_at IS NULL AND NOT engine`, streamID); err != nil {
		return fmt.Errorf("drop session: %w", err)
	}
	return nil
}

// markPublished notes that a publisher has come to a session that began without
// one.
func markPublished(ctx context.Context, tx pgx.Tx, streamID string) error {
	if _, err := tx.Exec(ctx, `UPDATE media_sessions SET engine = true WHERE stream_id = $1 AND ended_at IS NULL`, streamID); err != nil {
		return fmt.Errorf("mark session: %w", err)
	}
	return nil
}
