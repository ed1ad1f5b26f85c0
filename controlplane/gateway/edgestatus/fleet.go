// Package edgestatus keeps the state of every edge, whichever replica it is connected
// to: which version it should hold and holds, what it refuses, how far it has read
// the key feed, and when it was last seen.
//
// A [Recorder] on each replica writes what that replica's xDS server sees; edges
// report what only they know by [Reports]; [Store.View] joins both, so that any
// replica answers for the whole fleet. All times are of the database's clock:
// replicas whose clocks differ agree.
package edgestatus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/gateway/xds"
	"sluice.dev/sluice/platform/storage/postgres"
)

// LiveFor is for how long an edge counts as alive after it was last heard of:
// three heartbeats, and long enough to move to another replica.
const LiveFor = 15 * time.Second

// ForgottenAfter is when an edge that is gone leaves the list.
const ForgottenAfter = time.Hour

// View is the fleet at one moment.
type View struct {
	Version int64  `json:"version"` // newest configuration; 0: none
	Data    []Edge `json:"data"`
}

// Edge is one edge, by what its replica saw and what it reported itself.
type Edge struct {
	ID        string    `json:"id"`
	Live      bool      `json:"live"`      // heard of within LiveFor
	Connected bool      `json:"connected"` // has a stream to a replica
	Current   bool      `json:"current"`   // live, and holds the newest configuration
	Replica   string    `json:"replica"`   // that serves it, or did last
	Since     time.Time `json:"since"`     // when it connected, or was lost
	LastSeen  time.Time `json:"last_seen"`
	Wanted    int64     `json:"version_wanted"`
	Held      int64     `json:"version_held"`
	// Lag is how many seconds ago the first version that it lacks was made.
	Lag float64 `json:"lag_seconds"`
	Seen
	Feed   *Feed   `json:"feed,omitempty"`
	Report *Report `json:"report,omitempty"` // nil: it has not reported
}

// Seen is the part of an edge that its replica writes whole.
type Seen struct {
	GatewayAddr string `json:"gateway_addr"`
	RuntimeAddr string `json:"runtime_addr"`
	Build       string `json:"build"` // of Envoy
	// Published is the newest version of which its replica has waited for every
	// step: an edge that lacks it then has refused it, or does not answer.
	Published int64            `json:"version_published"`
	Refusals  []string         `json:"refusals,omitempty"`
	Types     []xds.TypeStatus `json:"types,omitempty"`
}

// Feed is how far an edge's Envoy has read the key feed.
type Feed struct {
	Epoch    int64 `json:"epoch"`
	Position int64 `json:"position"`
	Head     int64 `json:"head"`   // of the feed now
	Behind   int64 `json:"behind"` // changes that it may lack; it reports every few seconds
	// Age is how many seconds ago the first change that it may lack was made.
	Age float64 `json:"age_seconds"`
}

// Store keeps the fleet in Postgres.
type Store struct{ DB postgres.DB }

// Observe writes what a replica sees of edges. now is that replica's clock, of
// which only differences are used. What it sees of an edge that has gone to
// another replica since is dropped.
func (s Store) Observe(ctx context.Context, replica string, now time.Time, edges []xds.EdgeStatus) error {
	var batch pgx.Batch
	for _, e := range edges {
		seen, err := json.Marshal(Seen{e.GatewayAddr, e.RuntimeAddr, e.Build, e.Published, e.Refusals, e.Types})
		if err != nil {
			return fmt.Errorf("encode the status of edge %q: %w", e.ID, err)
		}
		batch.Queue(`
			INSERT INTO edges AS e (id, replica, connected, since, last_seen, version_wanted, version_held, status)
			VALUES ($1, $2, $3, now() - $4::interval, now() - $5::interval, $6, $7, $8)
			ON CONFLICT (id) DO UPDATE SET
				replica = excluded.replica, connected = excluded.connected, since = excluded.since,
				last_seen = greatest(e.last_seen, excluded.last_seen),
				version_wanted = excluded.version_wanted, version_held = excluded.version_held, status = excluded.status
			WHERE e.replica = excluded.replica OR NOT e.connected AND excluded.connected OR excluded.connected AND e.since < excluded.since`,
			e.ID, replica, e.Connected, now.Sub(e.Since), now.Sub(e.LastSeen), e.Wanted, e.Held, seen)
	}
	if batch.Len() == 0 {
		return nil
	}
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error { return tx.SendBatch(ctx, &batch).Close() })
	if err != nil {
		return fmt.Errorf("write the status of %d edges: %w", batch.Len(), err)
	}
	return nil
}

// Beat notes that a replica still serves the streams of the edges with ids, and
// forgets edges that are long gone. It returns for how many edges that is so by
// the table: fewer, when some have moved or the table was lost in a crash.
func (s Store) Beat(ctx context.Context, replica string, ids []string) (int, error) {
	tag, err := s.DB.Exec(ctx, `
		WITH gone AS (DELETE FROM edges WHERE last_seen < now() - $3::interval)
		UPDATE edges SET last_seen = now() WHERE id = ANY($1) AND replica = $2 AND connected`, ids, replica, ForgottenAfter)
	if err != nil {
		return 0, fmt.Errorf("note that %d edges live: %w", len(ids), err)
	}
	return int(tag.RowsAffected()), nil
}

// View returns the fleet in the order of names.
func (s Store) View(ctx context.Context) (v View, err error) {
	err = s.DB.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM config_versions`).Scan(&v.Version)
	if err != nil {
		return v, fmt.Errorf("read the newest version: %w", err)
	}
	rows, _ := s.DB.Query(ctx, `
		SELECT e.id, e.replica, e.connected, e.since, e.last_seen, e.last_seen > now() - $1::interval,
			e.version_wanted, e.version_held, e.status, e.report, e.reported_at IS NOT NULL,
			extract(epoch FROM now() - e.reported_at)::float8,
			coalesce((SELECT extract(epoch FROM now() - min(c.created_at)) FROM config_versions c WHERE c.version > e.version_held), 0)::float8,
			e.feed_epoch, e.feed_position, f.head, CASE WHEN e.feed_epoch = f.epoch THEN f.head - e.feed_position ELSE f.head END,
			coalesce((SELECT extract(epoch FROM clock_timestamp() - r.changed_at) FROM edge_records r WHERE r.seq > e.feed_position ORDER BY r.seq LIMIT 1), 0)::float8
		FROM edges e, edge_feed f ORDER BY e.id`, LiveFor)
	v.Data, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Edge, error) { return scan(row, v.Version) })
	if err != nil {
		return v, fmt.Errorf("read the fleet: %w", err)
	}
	return v, nil
}

// AllCurrent reports whether there are live edges, and all of them hold the newest
// configuration.
func (s Store) AllCurrent(ctx context.Context) (bool, error) {
	v, err := s.View(ctx)
	live, current := 0, 0
	for _, e := range v.Data {
		if e.Live {
			live++
		}
		if e.Current {
			current++
		}
	}
	return live > 0 && live == current, err
}

// scan reads one row of View.
func scan(row pgx.CollectableRow, newest int64) (e Edge, err error) {
	var seen, report []byte
	var reported bool
	var reportAge *float64
	var feed Feed
	err = row.Scan(&e.ID, &e.Replica, &e.Connected, &e.Since, &e.LastSeen, &e.Live, &e.Wanted, &e.Held, &seen, &report, &reported, &reportAge,
		&e.Lag, &feed.Epoch, &feed.Position, &feed.Head, &feed.Behind, &feed.Age)
	if err != nil {
		return e, err
	}
	e.Wanted = max(e.Wanted, newest)
	e.Connected = e.Connected && e.Live
	e.Current = e.Live && e.Held >= newest
	if err := json.Unmarshal(seen, &e.Seen); err != nil {
		return e, fmt.Errorf("the status of edge %q: %w", e.ID, err)
	}
	if !reported {
		return e, nil
	}
	e.Feed, e.Report = &feed, &Report{}
	if err := json.Unmarshal(report, e.Report); err != nil {
		return e, fmt.Errorf("the report of edge %q: %w", e.ID, err)
	}
	e.Report.Uptime += *reportAge
	return e, nil
}
