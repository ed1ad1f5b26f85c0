// Package views counts who watches. A player's own requests are the heartbeat:
// playlists of live streams are asked for every few seconds, files once.
package views

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/identity"
	"sluice.dev/sluice/controlplane/postgres"
)

// Present is how long after its last request a viewer counts as watching. It is
// several times the interval at which players ask for a live playlist.
const Present = 30 * time.Second

// Viewer is the hash by which a viewer is known.
type Viewer []byte

// ViewerOf tells viewers apart: by name, where their token gives one, else by
// address and player. Neither is stored.
func ViewerOf(r *http.Request, name string) Viewer {
	text := "name " + name
	if name == "" {
		text = "address " + identity.ClientAddress(r) + " " + r.UserAgent()
	}
	sum := sha256.Sum256([]byte(text))
	return sum[:16]
}

// Subject is what is watched.
type Subject struct {
	Owner     string
	Account   string // who hears of thresholds; empty: nobody
	ID        string // of a stream or an asset
	Threshold int    // viewers at once to tell of; 0: none
}

// Counter counts. Every field is required.
type Counter struct {
	DB     postgres.DB
	Events controlplane.Emitter
	Now    func() time.Time
}

// Seen counts a request by viewer. The first one of a viewer in a live session
// raises the session's numbers, and may emit viewer.threshold_reached.
func (c Counter) Seen(ctx context.Context, s Subject, viewer Viewer) error {
	now := c.Now().UTC().Truncate(time.Millisecond)
	return postgres.InTx(ctx, c.DB, func(tx pgx.Tx) error {
		joined, err := beat(ctx, tx, s, viewer, now)
		if err != nil || !joined {
			return err
		}
		return c.join(ctx, tx, s, now)
	})
}

// beat keeps a view alive, or begins one. It reports whether the viewer was not
// present before.
func beat(ctx context.Context, tx pgx.Tx, s Subject, viewer Viewer, now time.Time) (joined bool, err error) {
	err = tx.QueryRow(ctx, `WITH before AS (
			SELECT max(last_at) AS last FROM media_views WHERE subject = $2 AND viewer = $3 AND last_at > $5
		), seen AS (
			INSERT INTO media_views (owner, subject, viewer, hour, first_at, last_at)
			VALUES ($1, $2, $3, date_trunc('hour', $4::timestamptz, 'UTC'), $4, $4)
			ON CONFLICT (subject, viewer, hour) DO UPDATE SET last_at = greatest(media_views.last_at, excluded.last_at)
		) SELECT last IS NULL FROM before`, s.Owner, s.ID, viewer, now, now.Add(-Present)).Scan(&joined)
	if err != nil {
		return false, fmt.Errorf("count view: %w", postgres.Unreachable(err))
	}
	return joined, nil
}

// join updates the open session of a stream, if there is one.
func (c Counter) join(ctx context.Context, tx pgx.Tx, s Subject, now time.Time) error {
	current, err := Current(ctx, tx, s.Owner, s.ID, now)
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `UPDATE media_sessions SET peak_viewers = greatest(peak_viewers, $2),
			total_viewers = (SELECT count(DISTINCT viewer) FROM media_views WHERE subject = $1 AND last_at >= started_at)
		WHERE stream_id = $1 AND ended_at IS NULL`, s.ID, current)
	if err != nil {
		return fmt.Errorf("count session: %w", postgres.Unreachable(err))
	}
	if tag.RowsAffected() == 0 || s.Threshold == 0 || current < s.Threshold || s.Account == "" {
		return nil
	}
	return c.tell(ctx, tx, s, current, now)
}

// tell emits the event, once per session.
func (c Counter) tell(ctx context.Context, tx pgx.Tx, s Subject, current int, now time.Time) error {
	tag, err := tx.Exec(ctx, `UPDATE media_sessions SET threshold_told = true
		WHERE stream_id = $1 AND ended_at IS NULL AND NOT threshold_told`, s.ID)
	if err != nil {
		return fmt.Errorf("mark threshold: %w", postgres.Unreachable(err))
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return c.Events.EmitTx(ctx, tx, controlplane.Event{Account: s.Account, Type: "viewer.threshold_reached", StreamID: s.ID, Time: now,
		Data: map[string]any{"threshold": s.Threshold, "current_viewers": current, "threshold_type": "concurrent"}})
}

// Current is the number of viewers of owner's subject who are present at now.
func Current(ctx context.Context, db postgres.DB, owner, subject string, now time.Time) (n int, err error) {
	err = db.QueryRow(ctx, `SELECT count(DISTINCT viewer) FROM media_views WHERE owner = $1 AND subject = $2 AND last_at > $3`,
		owner, subject, now.Add(-Present)).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count viewers: %w", postgres.Unreachable(err))
	}
	return n, nil
}
