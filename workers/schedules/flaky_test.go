package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/workers/schedules"
)

var errFlaky = errors.New("the connection broke")

// flakyDB breaks a part of all transactions: at the beginning, right before
// the commit, or right after it, when everything is stored and the caller is
// told the opposite.
type flakyDB struct{ *pgxpool.Pool }

func (f flakyDB) Begin(ctx context.Context) (pgx.Tx, error) {
	if rand.IntN(10) == 0 {
		return nil, errFlaky
	}
	tx, err := f.Pool.Begin(ctx)
	return flakyTx{tx}, err
}

type flakyTx struct{ pgx.Tx }

func (f flakyTx) Commit(ctx context.Context) error {
	switch rand.IntN(10) {
	case 0:
		return errors.Join(errFlaky, f.Tx.Rollback(ctx))
	case 1:
		return errors.Join(errFlaky, f.Tx.Commit(ctx))
	}
	return f.Tx.Commit(ctx)
}

// TestTransactionsThatBreakMakeNoRunTwice has four workers claim and carry out
// runs over a database that breaks a quarter of their transactions.
func TestTransactionsThatBreakMakeNoRunTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const count, hours = 30, 5
	for i := range count {
		b.create(fmt.Sprint("s", i), `{"type":"recurring","cron":"0 * * * *"}`, `,"overlapPolicy":"queue"`)
	}
	for range hours {
		b.clock.Advance(time.Hour)
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(b.flakyWorker)
		}
		workers.Wait()
		b.drain()
	}
	var runs, distinct, good, counted int
	err := b.pool.QueryRow(t.Context(), `SELECT count(*), count(DISTINCT (schedule_id, scheduled_for)), count(*) FILTER (WHERE status = 'success'),
		(SELECT sum(execution_count) FROM schedules) FROM schedule_executions`).Scan(&runs, &distinct, &good, &counted)
	if want := count * hours; err != nil || runs != want || distinct != want || good != want || counted != want {
		t.Errorf("%d runs, %d of them distinct, %d successful, %d counted, want %d (%v)", runs, distinct, good, counted, want, err)
	}
}

// flakyWorker claims and works over a database that breaks, for a while.
func (b *bundle) flakyWorker() {
	config := b.service.Config
	config.DB, config.Batch = flakyDB{b.pool}, 7
	service := schedules.New(config)
	runner := b.runner
	runner.Store = service
	for range 12 {
		if _, err := service.FireDue(b.t.Context(), nil, false); err != nil && !errors.Is(err, errFlaky) {
			b.t.Error(err)
		}
		for _, id := range b.open() {
			if _, err := runner.Run(b.t.Context(), id); err != nil && !errors.Is(err, errFlaky) {
				b.t.Error(err)
			}
		}
	}
}

// drain fires and works over the sound database until nothing is left.
func (b *bundle) drain() {
	b.t.Helper()
	for {
		b.clock.Advance(time.Minute) // past every lease and retry
		if _, err := b.service.TakeOver(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		b.fire()
		open := b.open()
		if len(open) == 0 {
			return
		}
		for _, id := range open {
			if _, err := b.runner.Run(b.t.Context(), id); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

// open lists all executions that are under way.
func (b *bundle) open() []string {
	rows, err := b.pool.Query(b.t.Context(), `SELECT id FROM schedule_executions WHERE status = 'executing'`)
	if err != nil {
		b.t.Error(err)
		return nil
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.t.Error(err)
	}
	return ids
}
