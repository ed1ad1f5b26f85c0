package onair

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/media/transcribe/transcript"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Broadcast is one that has ended, with captions in a language that are not kept yet.
type Broadcast struct {
	Session   string     `db:"session"`
	StreamID  string     `db:"stream_id"`
	Language  string     `db:"language"`
	StartedAt time.Time  `db:"started_at"`
	Recorded  *time.Time `db:"recorded_from"` // when its recording begins; nil: it is not known
	Recording string     `db:"recording"`     // its id; empty: there is none
	Ready     bool       `db:"ready"`         // the recording is
	Owner     string     `db:"owner"`
}

// Ended lists the broadcasts that have ended and whose recordings, if there are any, are
// stored or failed.
func (s Store) Ended(ctx context.Context) ([]Broadcast, error) {
	rows, _ := s.DB.Query(ctx, `SELECT b.id AS session, c.stream_id, c.language, b.started_at, b.recorded_from, coalesce(a.id, '') AS recording, coalesce(a.status = 'ready', false) AS ready, t.owner
		FROM media_live_captions c JOIN media_streams t ON t.id = c.stream_id JOIN media_sessions b ON b.stream_id = c.stream_id AND b.ended_at IS NOT NULL
			LEFT JOIN media_assets a ON a.session_id = b.id AND a.kind = 'recording'
		WHERE EXISTS (SELECT FROM media_live_utterances u WHERE u.session_id = b.id AND u.language = c.language) AND coalesce(a.status, '') <> 'processing'
		ORDER BY b.ended_at, c.language LIMIT 100`)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Broadcast])
	if err != nil {
		return nil, fmt.Errorf("read broadcasts that have ended: %w", err)
	}
	return found, nil
}

// maxTaken bounds the utterances of a broadcast that are kept: some sixty hours of speech.
const maxTaken = 50_000

// Take removes what was said in a broadcast and returns it, its times from that of start.
func (b Broadcast) Take(ctx context.Context, tx pgx.Tx, start time.Time) (t transcript.Transcript, err error) {
	rows, _ := tx.Query(ctx, `SELECT spoken_at, transcript FROM media_live_utterances WHERE session_id = $1 AND language = $2 ORDER BY spoken_at, id LIMIT $3`, b.Session, b.Language, maxTaken)
	t = transcript.Transcript{Segments: []transcript.Segment{}, Words: []transcript.Word{}}
	var all strings.Builder // which Add would copy each time
	var at time.Time
	var text []byte
	_, err = pgx.ForEachRow(rows, []any{&at, &text}, func() error {
		var part transcript.Transcript
		if err := json.Unmarshal(text, &part); err != nil {
			return err
		}
		t.Text = ""
		t.Add(part, max(0, at.Sub(start).Seconds()))
		all.WriteString(" " + t.Text)
		return nil
	})
	t.Text = strings.TrimSpace(all.String())
	if err == nil {
		_, err = tx.Exec(ctx, `DELETE FROM media_live_utterances WHERE session_id = $1 AND language = $2`, b.Session, b.Language)
	}
	if err != nil {
		return t, fmt.Errorf("take captions of a broadcast: %w", err)
	}
	return t, nil
}

// RecordedFrom notes when the recording of a session begins.
func RecordedFrom(ctx context.Context, db postgres.DB, session string, at time.Time) error {
	if _, err := db.Exec(ctx, `UPDATE media_sessions SET recorded_from = $2 WHERE id = $1`, session, at); err != nil {
		return fmt.Errorf("note begin of recording: %w", err)
	}
	return nil
}
