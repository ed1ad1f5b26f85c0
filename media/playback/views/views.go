// Package views counts the viewers of streams and files. A player's own requests are the heartbeat:
// playlists of live streams are asked for every few seconds, files once.
package views

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Present is how long after its last request a viewer counts as watching. It is
// several times the interval at which players ask for a live playlist.
const Present = 30 * time.Second

// Viewer is the hash by which a viewer is known.
type Viewer []byte

// perAddress is as how many viewers of one thing an address counts at most, whose
// viewers have no name: a household or an office, and no more.
const perAddress = 16

// ViewerOf tells viewers apart: by name, where their token gives one, else by
// network and, up to perAddress of them, by player. Neither is stored.
func ViewerOf(r *http.Request, name string) Viewer {
	text := "name " + name
	if name == "" {
		player := fnv.New32a()
		_, _ = io.WriteString(player, r.UserAgent())
		text = "address " + network(identity.ClientAddress(r)) + " " + strconv.Itoa(int(player.Sum32()%perAddress))
	}
	sum := sha256.Sum256([]byte(text))
	return sum[:16]
}

// network is what one customer of a network has: an IPv4 address, or the /64 around
// an IPv6 address.
func network(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil || a.Is4() {
		return address
	}
	block, err := a.WithZone("").Prefix(64)
	if err != nil {
		return address
	}
	return block.String()
}

// Subject is what is watched.
type Subject struct {
	Owner string
	ID    string // of a stream or an asset
}

// Counter counts. Every field is required.
type Counter struct {
	DB     postgres.DB
	Events events.Emitter
	Now    func() time.Time
}

// Seen counts a request by viewer: one statement on a row of the viewer's own,
// however many others there are. What they are together is for Tally.
func (c Counter) Seen(ctx context.Context, s Subject, viewer Viewer) error {
	_, err := c.DB.Exec(ctx, `INSERT INTO media_views (owner, subject, viewer, hour, first_at, last_at)
		VALUES ($1, $2, $3, date_trunc('hour', $4::timestamptz, 'UTC'), $4, $4)
		ON CONFLICT (subject, viewer, hour) DO UPDATE SET last_at = greatest(media_views.last_at, excluded.last_at)`,
		s.Owner, s.ID, viewer, c.now())
	if err != nil {
		return fmt.Errorf("count view: %w", err)
	}
	return nil
}

// passed is a stream with more viewers than its owner wants to be told of.
type passed struct {
	Stream    string `db:"id"`
	Account   string `db:"account"`
	Viewers   int    `db:"viewers"`
	Threshold int    `db:"viewer_threshold"`
}

// Tally counts who is present in every open session, raises the sessions' peaks and
// emits viewer.threshold_reached, once for each session. It is for one process to
// call, about once a second: its cost grows with those present, not with how many
// come and go.
func (c Counter) Tally(ctx context.Context) error {
	now := c.now()
	rows, _ := c.DB.Query(ctx, `WITH present AS (
			SELECT s.id AS session, s.stream_id, v.n FROM media_sessions s
			CROSS JOIN LATERAL (SELECT count(DISTINCT viewer)::int AS n FROM media_views WHERE subject = s.stream_id AND last_at > $1) v
			WHERE s.ended_at IS NULL
		), raised AS (
			UPDATE media_sessions s SET peak_viewers = p.n FROM present p WHERE s.id = p.session AND s.peak_viewers < p.n
		) SELECT t.id, t.account, p.n AS viewers, t.viewer_threshold FROM present p JOIN media_streams t ON t.id = p.stream_id
			JOIN media_sessions s ON s.id = p.session
			WHERE t.viewer_threshold > 0 AND p.n >= t.viewer_threshold AND t.account <> '' AND NOT s.threshold_told`, now.Add(-Present))
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[passed])
	if err != nil {
		return fmt.Errorf("count viewers: %w", err)
	}
	for _, p := range found {
		err = errors.Join(err, postgres.InTx(ctx, c.DB, func(tx pgx.Tx) error { return c.tell(ctx, tx, p, now) }))
	}
	return err
}

// tell emits the event, once per session.
func (c Counter) tell(ctx context.Context, tx pgx.Tx, p passed, now time.Time) error {
	tag, err := tx.Exec(ctx, `UPDATE media_sessions SET threshold_told = true
		WHERE stream_id = $1 AND ended_at IS NULL AND NOT threshold_told`, p.Stream)
	if err != nil {
		return fmt.Errorf("mark threshold: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return c.Events.EmitTx(ctx, tx, events.Event{Account: p.Account, Type: "viewer.threshold_reached", StreamID: p.Stream, Time: now,
		Data: map[string]any{"threshold": p.Threshold, "current_viewers": p.Viewers, "threshold_type": "concurrent"}})
}

// now is the clock at the precision of the API.
func (c Counter) now() time.Time { return c.Now().UTC().Truncate(time.Millisecond) }

// Life is how long views are kept: analytics answers for a year, and a month more.
const Life = 400 * 24 * time.Hour

// purgeBatch is how many views one statement of Purge drops.
const purgeBatch = 10_000

// Purge drops the views that are older than Life, and returns how many. It steps
// from owner to owner by the index, so that it reads no more than it drops.
func (c Counter) Purge(ctx context.Context) (n int64, err error) {
	for {
		tag, err := c.DB.Exec(ctx, `WITH RECURSIVE owners AS (
				(SELECT owner FROM media_views ORDER BY owner LIMIT 1)
				UNION ALL SELECT (SELECT v.owner FROM media_views v WHERE v.owner > o.owner ORDER BY v.owner LIMIT 1) FROM owners o WHERE o.owner IS NOT NULL
			) DELETE FROM media_views WHERE ctid = ANY (ARRAY (SELECT v.ctid FROM owners o
				CROSS JOIN LATERAL (SELECT ctid FROM media_views WHERE owner = o.owner AND hour < $1 LIMIT $2) v LIMIT $2))`,
			c.now().Add(-Life), purgeBatch)
		if err != nil {
			return n, fmt.Errorf("purge views: %w", err)
		}
		if n += tag.RowsAffected(); tag.RowsAffected() < purgeBatch {
			return n, nil
		}
	}
}

// Current is the number of viewers of owner's subject who are present at now.
func Current(ctx context.Context, db postgres.DB, owner, subject string, now time.Time) (n int, err error) {
	err = db.QueryRow(ctx, `SELECT count(DISTINCT viewer) FROM media_views WHERE owner = $1 AND subject = $2 AND last_at > $3`,
		owner, subject, now.Add(-Present)).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count viewers: %w", err)
	}
	return n, nil
}
