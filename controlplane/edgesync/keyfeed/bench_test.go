package keyfeed

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// From the start of the transaction that adds a key to the moment at which a
// waiting poll has been answered with it.
func BenchmarkNewKeyReachesAPoll(b *testing.B) {
	db := pgtest.Pool(b)
	l := listener(db)
	f := New(Config{Pool: db, Heard: l.On(Channel)})
	listening := f.notifier.next()
	go l.Run(b.Context())
	go f.Run(b.Context())
	<-listening
	p, err := f.poll(b.Context(), request{})
	if err != nil {
		b.Fatal(err)
	}
	answers := make(chan keytable.Page)
	ask := make(chan request)
	go func() {
		for q := range ask {
			p, err := f.poll(b.Context(), q)
			if err != nil {
				b.Error(err)
			}
			answers <- p
		}
	}()
	defer close(ask)
	n := uint64(0)
	for b.Loop() {
		ask <- request{epoch: p.Epoch, position: p.Position, wait: maxWait}
		n++
		err := postgres.InTx(b.Context(), db, func(tx pgx.Tx) error { return PutTx(b.Context(), tx, record(n)) })
		if err != nil {
			b.Fatal(err)
		}
		if p = <-answers; len(p.Records) != keytable.RecordSize {
			b.Fatalf("%d bytes", len(p.Records))
		}
	}
}

// What an edge that starts cold reads: a million keys.
func BenchmarkSnapshotOfAMillionKeys(b *testing.B) {
	db := pgtest.Pool(b)
	const million = 1_000_000
	_, err := db.Exec(b.Context(), `
		INSERT INTO edge_records (tag, record, seq)
		SELECT tag, tag || '\x01'::bytea || substring(sha256(tag), 1, 31) || substring(sha256(tag), 1, 16), n
		FROM (SELECT substring(sha256(n::text::bytea), 1, 16) AS tag, n FROM generate_series(1, $1::bigint) n) t`, million)
	if err == nil {
		_, err = db.Exec(b.Context(), `UPDATE edge_feed SET head = $1`, million)
	}
	if err == nil {
		_, err = db.Exec(b.Context(), `VACUUM ANALYZE edge_records`)
	}
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		q, records := request{}, 0
		for {
			p, _, err := page(b.Context(), db, q, keytable.MaxPageRecords)
			if err != nil {
				b.Fatal(err)
			}
			records += len(p.Records) / keytable.RecordSize
			if q = (request{epoch: p.Epoch, position: p.Position, cursor: p.Cursor}); p.Last {
				break
			}
		}
		if records != million {
			b.Fatalf("%d records", records)
		}
	}
}
