// Package usage keeps what edges have counted: it takes their parcels, each
// once, sums minutes up into hours and days, reads usage for reports, and tells
// edges which accounts have used up what their plan allows in a month
// (BILLING_002). filters/limits/meter says how a parcel is written.
package usage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/platform/clock"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Store keeps usage in Postgres.
type Store struct {
	DB postgres.DB
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// now is the time by the clock of s, in UTC.
func (s Store) now() time.Time { return clock.Or(s.Now).UTC() }

// Taken says what became of a parcel.
type Taken struct {
	New      bool     // it had not been counted before
	Requests uint64   // in it
	Accounts []string // whose usage counts towards a quota, sorted
}

// Take counts a parcel, unless it or a later one of the same start of its edge
// has been counted already. It commits whole or not at all.
func (s Store) Take(ctx context.Context, p meter.Parcel, batches []meter.Batch) (Taken, error) {
	f := fold(batches, s.now())
	t := Taken{Requests: f.requests, Accounts: f.accounts()}
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			INSERT INTO usage_sources AS u (edge, boot, sequence, seen_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT ON CONSTRAINT usage_sources_pkey DO UPDATE SET sequence = excluded.sequence, seen_at = excluded.seen_at
			WHERE u.sequence < excluded.sequence`, p.Edge, p.Boot, int64(p.Sequence), s.now())
		if err != nil {
			return fmt.Errorf("note parcel: %w", err)
		}
		if t.New = tag.RowsAffected() == 1; !t.New {
			return nil
		}
		if err := countTx(ctx, tx, f.counts); err != nil {
			return err
		}
		if err := totalTx(ctx, tx, f.totals); err != nil {
			return err
		}
		return useTx(ctx, tx, f.uses)
	})
	return t, err
}

// countTx adds to the minutes, and to the hours and days that have been summed
// up already.
func countTx(ctx context.Context, tx pgx.Tx, counts map[cell]meter.Counts) error {
	if _, err := tx.Exec(ctx, `LOCK TABLE usage_progress IN ROW SHARE MODE`); err != nil {
		return fmt.Errorf("hold the sums: %w", err)
	}
	var hours, days time.Time
	if err := tx.QueryRow(ctx, `SELECT hours, days FROM usage_progress`).Scan(&hours, &days); err != nil {
		return fmt.Errorf("read how far sums go: %w", err)
	}
	all := map[cell]meter.Counts{}
	for c, n := range counts {
		all[c] = n
		if c.at.Before(hours) {
			merge(all, c.in(Hour), n)
		}
		if c.at.Before(days) {
			merge(all, c.in(Day), n)
		}
	}
	return addTx(ctx, tx, all)
}

// addTx adds counts to the table, in the order of its key: two parcels at a time
// then wait for each other and never deadlock.
func addTx(ctx context.Context, tx pgx.Tx, counts map[cell]meter.Counts) error {
	cells := slices.SortedFunc(maps.Keys(counts), cell.compare)
	for chunk := range slices.Chunk(cells, 2000) {
		var r rows
		for _, c := range chunk {
			r.add(c, counts[c])
		}
		_, err := tx.Exec(ctx, `
			INSERT INTO usage_counts AS u (account_id, grain, at, key_id, product, route, class, requests, refused, bytes_in, bytes_out, latency, open_millis)
			SELECT a, g, t, k, p, r, c, n, f, i, o, l::bigint[], m FROM unnest($1::text[], $2::smallint[], $3::timestamptz[], $4::text[], $5::text[],
				$6::text[], $7::smallint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::text[],
				$13::bigint[]) AS x (a, g, t, k, p, r, c, n, f, i, o, l, m)
			ON CONFLICT ON CONSTRAINT usage_counts_pkey DO UPDATE SET requests = u.requests + excluded.requests,
				refused = u.refused + excluded.refused, bytes_in = u.bytes_in + excluded.bytes_in,
				bytes_out = u.bytes_out + excluded.bytes_out, open_millis = u.open_millis + excluded.open_millis,
				latency = `+latencyOf("u.latency[%d] + excluded.latency[%[1]d]"),
			r.account, r.grain, r.at, r.key, r.product, r.route, r.class, r.requests, r.refused, r.in, r.out, r.latency, r.open)
		if err != nil {
			return fmt.Errorf("count usage: %w", err)
		}
	}
	return nil
}

// totalTx adds to the months of accounts. An account that is gone has none.
func totalTx(ctx context.Context, tx pgx.Tx, totals map[total]int64) error {
	var account, product []string
	var month []time.Time
	var requests []int64
	for _, t := range slices.SortedFunc(maps.Keys(totals), total.compare) {
		account, product = append(account, t.account), append(product, t.product)
		month, requests = append(month, t.month), append(requests, totals[t])
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO usage_totals AS u (account_id, month, product, requests)
		SELECT a.id, m, p, n FROM unnest($1::text[], $2::date[], $3::text[], $4::bigint[]) WITH ORDINALITY AS x (a, m, p, n, ord)
		JOIN accounts a ON a.id = x.a ORDER BY ord
		ON CONFLICT ON CONSTRAINT usage_totals_pkey DO UPDATE SET requests = u.requests + excluded.requests`,
		account, month, product, requests)
	if err != nil {
		return fmt.Errorf("add to totals: %w", err)
	}
	return nil
}

// useTx notes the last uses of keys, each at most once a minute.
func useTx(ctx context.Context, tx pgx.Tx, uses []use) error {
	if len(uses) == 0 {
		return nil
	}
	var key, address []string
	var at []time.Time
	for _, u := range uses {
		key, at, address = append(key, u.key), append(at, u.at), append(address, u.address)
	}
	_, err := tx.Exec(ctx, `
		WITH used AS (SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::text[]) AS x (key, at, address)),
		due AS (
			SELECT k.id, u.at, nullif(u.address, '')::inet AS address FROM api_keys k JOIN used u ON u.key = k.id
			WHERE k.last_used_at IS NULL OR date_trunc('minute', k.last_used_at) < date_trunc('minute', u.at)
			ORDER BY k.id FOR NO KEY UPDATE OF k
		)
		UPDATE api_keys k SET last_used_at = due.at, last_used_ip = due.address FROM due WHERE k.id = due.id`, key, at, address)
	if err != nil {
		return fmt.Errorf("note uses of keys: %w", err)
	}
	return nil
}
