package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/bench/hostile"
	"sluice.dev/sluice/bench/load"
)

// measured is how late things of one kind were, and how many failed.
type measured struct {
	late   []time.Duration
	failed int
}

// kinds are what is measured, in the order of the table.
var kinds = []string{"schedule: due to done", "delivery: event to answer", "POST with Idempotency-Key", "sign-in"}

// settled bounds how long runs may take to end after a phase.
const settled = time.Minute

// measure has the neighbour do what it does for a while.
func (b *bed) measure(ctx context.Context, phase string, o options) (map[string]measured, error) {
	began := time.Now()
	if err := b.plan(ctx, b.Dev["SLUICE_ACCOUNT_ID"], phase, b.receiver.URL, o.rate, began.Add(time.Second), o.length); err != nil {
		return nil, err
	}
	gateway, all := b.Dev["SLUICE_GATEWAY_URL"], map[string]measured{}
	var mu sync.Mutex
	var group sync.WaitGroup
	during, stop := context.WithTimeout(ctx, o.length)
	defer stop()
	repeat := func(kind string, f func(n int) error) {
		group.Go(func() {
			m := evenly(during, o.rate, f)
			mu.Lock()
			defer mu.Unlock()
			all[kind] = m
		})
	}
	repeat(kinds[2], func(n int) error {
		name := fmt.Sprintf("%s %d", phase, n)
		return b.ask(ctx, gateway+"/v1/streams", b.Dev["SLUICE_API_KEY"], name, map[string]string{"title": name, "protocol": "rtmp"}, nil)
	})
	repeat(kinds[3], func(int) error {
		return b.ask(ctx, gateway+"/v1/auth/sessions", "", "", map[string]string{"email": b.Dev["SLUICE_USER_EMAIL"], "password": b.Dev["SLUICE_USER_PASSWORD"]}, nil)
	})
	group.Wait()
	if err := b.settle(ctx, phase, int(o.length.Seconds()*float64(o.rate))); err != nil {
		return nil, err
	}
	return all, errors.Join(b.read(ctx, all, kinds[0], `SELECT extract(epoch FROM e.finished_at - e.scheduled_for) * 1000, e.status = 'success'
			FROM schedule_executions e WHERE e.schedule_id LIKE 'schedule_' || $1 || '0%'`, phase),
		b.read(ctx, all, kinds[1], `SELECT extract(epoch FROM a.started_at - d.created_at) * 1000 + a.duration_ms, a.outcome = 'succeeded'
			FROM webhook_deliveries d JOIN webhook_attempts a ON a.delivery_id = d.id AND a.number = 1
			WHERE d.subscription_id = $1 AND d.created_at >= $2 AND a.duration_ms IS NOT NULL`, b.hook, began))
}

// evenly calls f at an even rate until ctx ends, whether or not earlier calls have
// returned; a time counts from when the call was due.
func evenly(ctx context.Context, rate int, f func(int) error) (m measured) {
	var mu sync.Mutex
	var group sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			group.Wait()
			return m
		case due := <-tick.C:
			group.Go(func() {
				err := f(n)
				took := time.Since(due)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					m.failed++
				}
				m.late = append(m.late, took)
			})
		}
	}
}

// settle waits until the runs of a phase have ended, and their events arrived.
func (b *bed) settle(ctx context.Context, phase string, n int) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(settled); ; <-tick.C {
		var done, open int
		err := b.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM schedule_executions WHERE schedule_id LIKE 'schedule_' || $1 || '0%' AND finished_at IS NOT NULL),
			(SELECT count(*) FROM webhook_deliveries WHERE subscription_id = $2 AND status = 'pending')`, phase, b.hook).Scan(&done, &open)
		if err != nil || done >= n && open == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d runs have ended, %d deliveries are pending", done, n, open)
		}
	}
}

// read takes times in milliseconds from the database.
func (b *bed) read(ctx context.Context, all map[string]measured, kind, sql string, args ...any) error {
	rows, err := b.pool.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	var m measured
	var late float64
	var good bool
	_, err = pgx.ForEachRow(rows, []any{&late, &good}, func() error {
		m.late = append(m.late, time.Duration(late*float64(time.Millisecond)))
		if !good {
			m.failed++
		}
		return nil
	})
	all[kind] = m
	return err
}

// report prints the tables.
func report(ctx context.Context, b *bed, o options, quiet, beside map[string]measured, attacked map[string]hostile.Count, account string) error {
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	fmt.Printf("%d a second of each for %v; the other tenant asks for %d times as much\n\n", o.rate, o.length, o.times)
	fmt.Println("| of the neighbour | quiet p50 | p99 | most | beside p50 | p99 | most | p99, beside : quiet | failed |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, kind := range kinds {
		q, h := quiet[kind], beside[kind]
		fmt.Printf("| %s |", kind)
		for _, m := range []measured{q, h} {
			fmt.Printf(" %.1f ms | %.1f ms | %.1f ms |", ms(load.Quantile(m.late, .5)), ms(load.Quantile(m.late, .99)), ms(load.Quantile(m.late, 1)))
		}
		ratio := float64(load.Quantile(h.late, .99)) / float64(cmp.Or(load.Quantile(q.late, .99), 1))
		fmt.Printf(" %.2f | %d of %d |\n", ratio, q.failed+h.failed, len(q.late)+len(h.late))
	}
	fmt.Println("\n| of the other tenant | served | refused | failed | unanswered |\n| --- | --- | --- | --- | --- |")
	for _, name := range slices.Sorted(maps.Keys(attacked)) {
		c := attacked[name]
		fmt.Printf("| %s | %d | %d | %d | %d |\n", name, c.Served, c.Refused, c.Failed, c.Unanswered)
	}
	var runs, attempts, deliveries, tries int
	err := b.pool.QueryRow(ctx, `SELECT count(*), coalesce(sum(e.attempts), 0) FROM schedule_executions e JOIN schedules s ON s.id = e.schedule_id WHERE s.account_id = $1`, account).Scan(&runs, &attempts)
	if err != nil {
		return err
	}
	err = b.pool.QueryRow(ctx, `SELECT count(*), (SELECT count(*) FROM webhook_attempts a JOIN webhook_deliveries d ON d.id = a.delivery_id
		JOIN webhook_subscriptions s ON s.id = d.subscription_id WHERE s.account_id = $1)
		FROM webhook_deliveries d JOIN webhook_subscriptions s ON s.id = d.subscription_id WHERE s.account_id = $1`, account).Scan(&deliveries, &tries)
	fmt.Printf("\nIt had %d runs with %d attempts, and %d deliveries with %d.\n", runs, attempts, deliveries, tries)
	return err
}
