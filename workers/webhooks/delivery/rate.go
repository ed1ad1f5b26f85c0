package delivery

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres"
)

// maxRateWait bounds how long a delivery is put off before it asks again.
const maxRateWait = 30 * time.Second

// slots shares out times to n requests that come at now, at rate a second,
// when the next free time is at next: one second's worth may go at once, and no
// more than that is saved up. It returns how long each has to wait, 0 for those
// that may go, and the next free time after those that go. Those that wait
// take no slot: they ask again.
func slots(next, now time.Time, rate, n int) (waits []time.Duration, after time.Time) {
	gap := time.Second / time.Duration(rate)
	if saved := now.Add(-time.Second + gap); next.Before(saved) {
		next = saved
	}
	waits = make([]time.Duration, n)
	virtual := next
	for i := range waits {
		if virtual.After(now) {
			waits[i] = min(virtual.Sub(now), maxRateWait)
		} else {
			next = next.Add(gap)
		}
		virtual = virtual.Add(gap)
	}
	return waits, next
}

// reserve lets the rate of each limited subscription decide who goes ahead.
// The row's lock makes the rate hold for all workers together.
func (d *Deliverer) reserve(ctx context.Context, all []opened) error {
	limited := map[string][]int{}
	for i, o := range all {
		if o.verdict == goAhead && o.rate > 0 {
			limited[o.subscription] = append(limited[o.subscription], i)
		}
	}
	ids := make([]string, 0, len(limited))
	for id := range limited {
		ids = append(ids, id)
	}
	slices.Sort(ids) // in one order everywhere: no deadlock
	for _, id := range ids {
		if err := d.reserveOne(ctx, id, all, limited[id]); err != nil {
			return fmt.Errorf("keep to the rate of %s: %w", id, err)
		}
	}
	return nil
}

// reserveOne shares out the times of one subscription. The transaction is short:
// nothing is waited for while the row is locked.
func (d *Deliverer) reserveOne(ctx context.Context, id string, all []opened, which []int) error {
	return postgres.InTx(ctx, d.DB, func(tx pgx.Tx) error {
		var next time.Time
		err := tx.QueryRow(ctx, `SELECT coalesce(rate_next_at, 'epoch') FROM webhook_subscriptions WHERE id = $1 FOR NO KEY UPDATE`, id).Scan(&next)
		if err != nil {
			return err
		}
		waits, after := slots(next, d.Now(), all[which[0]].rate, len(which))
		for k, i := range which {
			if waits[k] > 0 {
				all[i].verdict, all[i].wait = waitABit, waits[k]
			}
		}
		_, err = tx.Exec(ctx, `UPDATE webhook_subscriptions SET rate_next_at = $2 WHERE id = $1`, id, after)
		return err
	})
}
