package invoicing

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// BenchmarkIssue issues an invoice with a fee and requests of 30 days.
func BenchmarkIssue(b *testing.B) {
	db := pgtest.Pool(b)
	for i := range b.N {
		id := fmt.Sprintf("acct_%013d", i)
		if _, err := db.Exec(b.Context(), `INSERT INTO accounts (id, name, plan, created_at) VALUES ($1, 'a', 'pro', '2026-01-01')`, id); err != nil {
			b.Fatal(err)
		}
		_, err := db.Exec(b.Context(), `INSERT INTO usage_counts (account_id, grain, at, key_id, product, route, class, requests, refused, bytes_in, bytes_out, latency, open_millis)
			SELECT $1, 2, day, 'key_1', 'p', 'r', 2, 1000, 0, 0, 0, array_fill(0::bigint, ARRAY[20]), 0 FROM generate_series('2026-11-01'::timestamptz, '2026-11-30', '1 day') AS day`, id)
		if err != nil {
			b.Fatal(err)
		}
	}
	if _, err := db.Exec(b.Context(), `UPDATE usage_progress SET hours = '2026-12-02', days = '2026-12-02'`); err != nil {
		b.Fatal(err)
	}
	s := Store{DB: db, Now: func() time.Time { return issueTime }, Prices: pricesOfCrashes}
	b.ResetTimer()
	if n, err := s.Issue(b.Context()); n != b.N || err != nil {
		b.Fatal(n, err)
	}
}
