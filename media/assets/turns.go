package assets

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// aside is for how long a job is put aside whose owner has its share of the
// workers, or had the last turn.
const aside = 3 * time.Second

// maxServed bounds the owners of whom Turns knows when they were served.
const maxServed = 10_000

// Turns has the owners of a queue served in turn: of those who wait, the one whose
// last turn is longest ago comes next. Its zero value is ready.
type Turns struct {
	mu     sync.Mutex
	n      int
	served map[string]int
}

// Take takes owner's turn, unless one of others has a better claim.
func (t *Turns) Take(owner string, others []string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range others {
		if t.served[o] < t.served[owner] {
			return false
		}
	}
	if t.served == nil || len(t.served) >= maxServed {
		t.served = map[string]int{} // everybody is new again
	}
	t.n++
	t.served[owner] = t.n
	return true
}

// waitForEncoder are the owners beside owner of whom a rendition or a render could be made,
// or chapters be found, at this moment.
func waitForEncoder(ctx context.Context, db postgres.DB, owner string) ([]string, error) {
	rows, _ := db.Query(ctx, `SELECT DISTINCT coalesce(r.owner, e.owner, c.owner) FROM river_job j
		LEFT JOIN media_renditions r ON r.id = j.args->>'rendition_id' AND r.status = 'processing'
		LEFT JOIN media_renders e ON e.id = j.args->>'render_id' AND e.status IN ('queued', 'rendering')
		LEFT JOIN media_chapter_searches c ON c.id = j.args->>'search_id' AND c.status = 'processing'
		WHERE j.queue = $1 AND j.state = 'available' AND j.scheduled_at <= clock_timestamp() AND coalesce(r.owner, e.owner, c.owner) <> $2`, TranscodeQueue, owner)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for others who wait: %w", err)
	}
	return found, nil
}

// Enter takes one of the places in which sources are fetched, which the caller must
// leave. A job whose owner has its share of them is put aside with the error.
func (v Service) Enter(owner string) (leave func(), err error) {
	leave, ok := v.Fetches.TryEnter(owner)
	if !ok {
		return nil, river.JobSnooze(aside)
	}
	return leave, nil
}

// line is the length of a queue, and how much of it is one owner's.
type line struct{ all, own int }

// full is TRANSCODE_001 for a queue that has no place for one more of an owner.
func (v Service) full(l line) error {
	switch {
	case l.own >= v.OwnerLimit:
		return &apierror.Error{Code: decision.Transcode001, RetryAfter: queueRetry,
			Message: fmt.Sprintf("%d of yours are waiting already, which is the most.", l.own)}
	case l.all >= v.QueueLimit:
		return &apierror.Error{Code: decision.Transcode001, RetryAfter: queueRetry}
	}
	return nil
}

// countLine reads the length of a queue by sql, whose $1 is the owner. Of an owner's
// requests at once each counts those before it: they wait for each other until their
// transactions end.
func countLine(ctx context.Context, tx pgx.Tx, owner, sql string) (l line, err error) {
	_, err = tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('media_queue ' || $1, 0))`, owner)
	if err == nil {
		err = tx.QueryRow(ctx, sql, owner).Scan(&l.all, &l.own)
	}
	if err != nil {
		return l, fmt.Errorf("count queue: %w", err)
	}
	return l, nil
}
