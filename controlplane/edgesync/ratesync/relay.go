package ratesync

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/filters/limits/sharedlimit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// relay passes reports between replicas by one row for each edge, in a table
// that is not logged. It holds the newest report, whichever replica it came to,
// so an edge that changes replicas is not counted twice.
type relay struct {
	pool  *pgxpool.Pool
	table *Table
	now   func() int64
	log   *slog.Logger
	wake  chan struct{}

	mu    sync.Mutex
	fresh map[string]queuedReport // reports to pass on, by edge
	seen  time.Time               // of the newest row that was read, by Postgres' clock
}

// queuedReport is one report as it came.
type queuedReport struct {
	told uint64
	raw  []byte
}

// Times of the relay: how often it passes reports on while there are any, and
// how often it looks for those of other replicas when there are none.
const (
	passEvery = 100 * time.Millisecond
	lookEvery = time.Second
)

// queue notes a report for the other replicas.
func (r *relay) queue(name string, told uint64, raw []byte) {
	r.mu.Lock()
	r.fresh[name] = queuedReport{told, raw}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run exchanges with the other replicas until ctx ends. While Postgres is away
// each replica goes on with the edges that speak to it. First it drops what
// edges of long ago have left.
func (r *relay) run(ctx context.Context) {
	if _, err := Prune(ctx, r.pool); err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, "counts: rows of edges that are gone stay", "cause", err)
	}
	failed := false
	for ok := true; ok; ok = r.waitForWork(ctx) {
		err := r.exchange(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			r.log.WarnContext(ctx, "counts: other replicas cannot be heard; limits are shared among the edges here", "cause", err)
		}
		failed = err != nil
	}
}

// waitForWork waits until it is time to exchange again; false: ctx has ended.
func (r *relay) waitForWork(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(passEvery):
	}
	select {
	case <-ctx.Done():
		return false
	case <-r.wake:
	case <-r.table.Busy():
	case <-time.After(lookEvery - passEvery):
	}
	return true
}

// exchange reads what others have and then passes on what is fresh, in this order: a
// report of an edge that has started anew replaces the row with the last counts of its
// start before, which this replica may not know. What cannot be passed on now is later.
func (r *relay) exchange(ctx context.Context) error {
	if err := r.read(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	fresh := r.fresh
	r.fresh = map[string]queuedReport{}
	r.mu.Unlock()
	if len(fresh) > 0 {
		if err := r.write(ctx, fresh); err != nil {
			r.putBack(fresh)
			return err
		}
	}
	r.table.setRead(r.now())
	return nil
}

// putBack queues reports again, unless there are newer ones, or they are so old that
// nothing of them counts any more.
func (r *relay) putBack(reports map[string]queuedReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest := r.now() - window - sharedlimit.SkewMillis
	for name, p := range reports {
		if newer, there := r.fresh[name]; int64(p.told) > oldest && (!there || newer.told < p.told) {
			r.fresh[name] = p
		}
	}
}

// write puts reports into the table, unless it has newer ones.
func (r *relay) write(ctx context.Context, fresh map[string]queuedReport) error {
	var names []string
	var told []int64
	var raw [][]byte
	for name, p := range fresh {
		names, told, raw = append(names, name), append(told, int64(p.told)), append(raw, p.raw)
	}
	_, err := r.pool.Exec(ctx, `
		INSERT INTO edge_counts AS c (edge, told, report, at)
		SELECT edge, told, report, clock_timestamp() FROM unnest($1::text[], $2::bigint[], $3::bytea[]) AS f (edge, told, report)
		ORDER BY edge
		ON CONFLICT (edge) DO UPDATE SET told = excluded.told, report = excluded.report, at = excluded.at WHERE c.told < excluded.told`,
		names, told, raw)
	if err != nil {
		return fmt.Errorf("pass counts on: %w", err)
	}
	return nil
}

// overlap is how far read looks back behind what it has seen: rows become
// visible in another order than they were stamped.
const overlap = time.Second

// read takes the reports that came to other replicas; those that came here are
// no news to the table.
func (r *relay) read(ctx context.Context) error {
	rows, _ := r.pool.Query(ctx, `SELECT edge, report, at, floor(extract(epoch FROM clock_timestamp() - at) * 1000)::bigint FROM edge_counts
		WHERE at > greatest($1, clock_timestamp() - make_interval(secs => $2))`, r.seen.Add(-overlap), sharedlimit.DeadMillis/1000)
	first := !r.table.hasRead()
	var name string
	var raw []byte
	var at time.Time
	var age int64
	_, err := pgx.ForEachRow(rows, []any{&name, &raw, &at, &age}, func() error {
		report, ok := sharedlimit.ParseReport(raw)
		switch now := r.now(); {
		case ok && !isEnded(name):
			r.table.TakeOld(name, report, now-max(0, age), now)
		case ok && first:
			r.table.TakeEnded(report, now-max(0, age))
		}
		if at.After(r.seen) {
			r.seen = at
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read counts of other replicas: %w", err)
	}
	return nil
}

// queueEnded passes on what an edge had counted when it ended or started anew: its row
// has that no more, and a replica that starts now must know it for a window still.
func (r *relay) queueEnded(last sharedlimit.Report) {
	name := endedMark + strconv.FormatUint(last.Boot, 16)
	last.Boot = 0
	r.queue(name, last.Told, last.Append(nil))
}

// endedMark begins the name of a row of what queueEnded passes on; no edge's name has it.
const endedMark = "\n"

func isEnded(name string) bool { return strings.HasPrefix(name, endedMark) }

// Prune drops the rows of edges that have not reported for an hour,
// and returns how many there were.
func Prune(ctx context.Context, db postgres.DB) (int, error) {
	done, err := db.Exec(ctx, `DELETE FROM edge_counts WHERE at < clock_timestamp() - interval '1 hour'`)
	if err != nil {
		return 0, fmt.Errorf("prune counts: %w", err)
	}
	return int(done.RowsAffected()), nil
}
