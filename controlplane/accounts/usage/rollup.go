package usage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres"
)

// How long usage is kept, by grain; and for how long the control plane knows
// which parcels of an edge it has, and what a past month's total was.
const (
	KeepMinutes = 7 * 24 * time.Hour
	KeepHours   = 90 * 24 * time.Hour
	KeepDays    = 800 * 24 * time.Hour
	keepSources = 30 * 24 * time.Hour
	keepTotals  = 400 * 24 * time.Hour
)

// settle is for how long after its end an hour waits for the last batches, so
// that few must be added to sums.
const settle = 5 * time.Minute

// RollUp sums minutes up into the hours that have ended, and hours into days,
// and returns how many hours and days those were. It may run at several places:
// each hour is summed once, and what comes later is added to its sum.
func (s Store) RollUp(ctx context.Context) (n int, err error) {
	for _, g := range []Grain{Hour, Day} {
		for more := true; more; {
			if more, err = s.rollUpOne(ctx, g); err != nil {
				return n, err
			}
			if more {
				n++
			}
		}
	}
	return n, nil
}

// rollUpOne sums up the next hour or day, if it has ended.
func (s Store) rollUpOne(ctx context.Context, g Grain) (done bool, err error) {
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		// Nobody counts while the sum is made: what is counted later sees that it is.
		if _, err := tx.Exec(ctx, `LOCK TABLE usage_progress IN EXCLUSIVE MODE`); err != nil {
			return fmt.Errorf("lock the sums: %w", err)
		}
		var hours, days time.Time
		if err := tx.QueryRow(ctx, `SELECT hours, days FROM usage_progress`).Scan(&hours, &days); err != nil {
			return fmt.Errorf("read how far sums go: %w", err)
		}
		from, ended, column := hours.UTC(), s.now().Add(-settle), "hours"
		if g == Day {
			from, ended, column = days.UTC(), hours.UTC(), "days"
		}
		to := g.next(from)
		if to.After(ended) {
			return nil
		}
		done = true
		if err := sumTx(ctx, tx, g, from, to); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE usage_progress SET `+column+` = $1`, to)
		return err
	})
	return done, err
}

// sumTx makes the rows of grain g for one hour or day of those of the grain
// below.
func sumTx(ctx context.Context, tx pgx.Tx, g Grain, from, to time.Time) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO usage_counts (account_id, grain, at, key_id, product, route, class, requests, refused, bytes_in, bytes_out, latency, open_millis)
		SELECT account_id, $1, $3, key_id, product, route, class, `+sums+`
		FROM usage_counts WHERE grain = $2 AND at >= $3 AND at < $4
		GROUP BY account_id, key_id, product, route, class
		ON CONFLICT ON CONSTRAINT usage_counts_pkey DO UPDATE SET requests = excluded.requests, refused = excluded.refused,
			bytes_in = excluded.bytes_in, bytes_out = excluded.bytes_out, latency = excluded.latency,
			open_millis = excluded.open_millis`, int16(g), int16(g-1), from, to)
	if err != nil {
		return fmt.Errorf("sum usage up: %w", err)
	}
	return nil
}

// sums are the sums of rows' counts, in the order of the columns.
var sums = strings.Join([]string{"sum(requests)::bigint", "sum(refused)::bigint", "sum(bytes_in)::bigint", "sum(bytes_out)::bigint",
	latencyOf("sum(latency[%d])::bigint"), "sum(open_millis)::bigint"}, ", ")

// Prune drops what has been kept for long enough, and returns how many rows that
// were. Minutes that have not been summed up stay.
func (s Store) Prune(ctx context.Context) (int, error) {
	now, total := s.now(), 0
	for _, part := range []struct {
		sql  string
		args []any
	}{
		{`DELETE FROM usage_counts WHERE grain = 0 AND at < least($1, (SELECT hours FROM usage_progress))`, []any{now.Add(-KeepMinutes)}},
		{`DELETE FROM usage_counts WHERE grain = 1 AND at < least($1, (SELECT days FROM usage_progress))`, []any{now.Add(-KeepHours)}},
		{`DELETE FROM usage_counts WHERE grain = 2 AND at < $1`, []any{now.Add(-KeepDays)}},
		{`DELETE FROM usage_sources WHERE seen_at < $1`, []any{now.Add(-keepSources)}},
		{`DELETE FROM usage_totals WHERE month < $1`, []any{now.Add(-keepTotals)}},
	} {
		tag, err := s.DB.Exec(ctx, part.sql, part.args...)
		if err != nil {
			return total, fmt.Errorf("prune usage: %w", err)
		}
		total += int(tag.RowsAffected())
	}
	return total, nil
}
