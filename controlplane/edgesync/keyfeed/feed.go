// Package keyfeed tells edges what changed about credentials, within
// milliseconds and without ever losing a change.
//
// Writers add to it in the transaction that makes the change: [PutTx] and
// [DeleteTx]. The table edge_records is a log compacted by tag; a writer takes
// its numbers from the one row of edge_feed, whose lock it holds until it
// commits, so numbers become visible in the order of commits and a reader never
// has to look back. Edges read it by long poll through [Feed.ServeHTTP]; what
// they read is encoded by filters/credentials/keytable.
package keyfeed

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Channel is the NOTIFY channel of changes; the payload is the new head.
const Channel = "sluice_edge_feed"

// batch bounds the records of one statement.
const batch = 5000

// PutTx adds records, or replaces those with the same tags, when tx commits.
// Call it last in the transaction: from here to the commit every other writer
// of the feed waits.
func PutTx(ctx context.Context, tx pgx.Tx, records ...keytable.Record) error {
	tags, raw := make([][]byte, 0, len(records)), make([][]byte, 0, len(records))
	at := make(map[keytable.Tag]int, len(records))
	for _, r := range records {
		if r.Kind == keytable.KindNone {
			return fmt.Errorf("put record %x: it has no kind", r.Tag)
		}
		b := r.Append(make([]byte, 0, keytable.RecordSize))
		if i, twice := at[r.Tag]; twice {
			raw[i] = b
			continue
		}
		at[r.Tag] = len(tags)
		tags, raw = append(tags, r.Tag[:]), append(raw, b)
	}
	return write(ctx, tx, tags, raw)
}

// DeleteTx puts tombstones in the place of the records with tags, when tx
// commits. The rule of PutTx holds: call it last.
func DeleteTx(ctx context.Context, tx pgx.Tx, tags ...keytable.Tag) error {
	list, seen := make([][]byte, 0, len(tags)), make(map[keytable.Tag]bool, len(tags))
	for _, t := range tags {
		if !seen[t] {
			seen[t] = true
			list = append(list, t[:])
		}
	}
	return write(ctx, tx, list, make([][]byte, len(list)))
}

// write stores records, nil for a tombstone, under tags that are all different.
func write(ctx context.Context, tx pgx.Tx, tags, records [][]byte) error {
	for len(tags) > 0 {
		n := min(batch, len(tags))
		_, err := tx.Exec(ctx, `
			WITH feed AS (UPDATE edge_feed SET head = head + $3::bigint RETURNING head),
			put AS (
				INSERT INTO edge_records (tag, record, seq, changed_at)
				SELECT c.tag, c.record, feed.head - $3::bigint + c.ord, clock_timestamp()
				FROM feed, unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS c (tag, record, ord)
				ON CONFLICT (tag) DO UPDATE SET record = excluded.record, seq = excluded.seq, changed_at = excluded.changed_at
			)
			SELECT pg_notify('`+Channel+`', head::text) FROM feed`, tags[:n], records[:n], n)
		if err != nil {
			return fmt.Errorf("write %d records to the feed: %w", n, err)
		}
		tags, records = tags[n:], records[n:]
	}
	return nil
}

// PutSecret publishes a secret that edges and services share, unless the feed
// has it already under that name.
func PutSecret(ctx context.Context, db postgres.DB, name string, secret [32]byte) error {
	r := keytable.Record{Tag: keytable.TagOfSecret(name), Kind: keytable.KindSecret, Secret: secret}
	return postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		var same bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM edge_records WHERE tag = $1 AND record = $2)`,
			r.Tag[:], r.Append(nil)).Scan(&same)
		if err != nil {
			return fmt.Errorf("look for secret %q in the feed: %w", name, err)
		}
		if same {
			return nil
		}
		return PutTx(ctx, tx, r)
	})
}

// PutValue publishes a named value of at most keytable.MaxValue bytes, unless the
// feed has it already; none takes it away.
func PutValue(ctx context.Context, db postgres.DB, name string, value []byte) error {
	tag := keytable.TagOfSecret(name)
	put := keytable.Split(tag, value)
	if len(value) > 0 && put == nil {
		return fmt.Errorf("%d bytes are more than edges take, which is %d", len(value), keytable.MaxValue)
	}
	return postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		have, err := live(ctx, tx, keytable.Parts(tag))
		if err != nil {
			return fmt.Errorf("look for value %q in the feed: %w", name, err)
		}
		same := len(have) == len(put)
		for _, r := range put {
			same = same && bytes.Equal(have[r.Tag], r.Append(nil))
			delete(have, r.Tag)
		}
		if same {
			return nil
		}
		if len(put) > 0 {
			if err := PutTx(ctx, tx, put...); err != nil {
				return err
			}
		}
		if len(have) == 0 {
			return nil
		}
		return DeleteTx(ctx, tx, slices.Collect(maps.Keys(have))...)
	})
}

// live returns those of the records with tags that are there.
func live(ctx context.Context, tx pgx.Tx, tags []keytable.Tag) (map[keytable.Tag][]byte, error) {
	list := make([][]byte, len(tags))
	for i := range tags {
		list[i] = tags[i][:]
	}
	rows, _ := tx.Query(ctx, `SELECT tag, record FROM edge_records WHERE tag = ANY ($1) AND record IS NOT NULL`, list)
	have := map[keytable.Tag][]byte{}
	var tag, record []byte
	_, err := pgx.ForEachRow(rows, []any{&tag, &record}, func() error {
		have[keytable.Tag(tag)] = slices.Clone(record)
		return nil
	})
	return have, err
}

// TombstoneAge is for how long a tombstone is kept: an edge that was away for
// longer reads a whole snapshot.
const TombstoneAge = 24 * time.Hour

// pruneBatch bounds how many tombstones go while writers wait.
const pruneBatch = 5000

// Prune drops the tombstones that are older than before and returns how many.
func Prune(ctx context.Context, db postgres.DB, before time.Time) (int, error) {
	total := 0
	for {
		n, err := pruneSome(ctx, db, before)
		total += n
		if err != nil || n < pruneBatch {
			return total, err
		}
	}
}

// pruneSome drops at most pruneBatch tombstones, the oldest first.
func pruneSome(ctx context.Context, db postgres.DB, before time.Time) (n int, err error) {
	err = postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		// The lock comes first, as it does for writers: the other order deadlocks.
		if _, err := tx.Exec(ctx, `SELECT 1 FROM edge_feed FOR UPDATE`); err != nil {
			return err
		}
		var last *int64
		err := tx.QueryRow(ctx, `
			WITH old AS (SELECT tag FROM edge_records WHERE record IS NULL AND changed_at < $1 ORDER BY changed_at LIMIT $2),
			gone AS (DELETE FROM edge_records r USING old WHERE r.tag = old.tag RETURNING r.seq)
			SELECT count(*), max(seq) FROM gone`, before, pruneBatch).Scan(&n, &last)
		if err != nil || last == nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE edge_feed SET pruned = greatest(pruned, $1)`, *last)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("prune the feed: %w", err)
	}
	return n, nil
}
