package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/bench/testbed"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
)

// store puts keys into the feed, which differ from the development key only in
// their number.
type store struct {
	conn *pgx.Conn
	dev  keytable.Record
	size int // keys that are there
}

func openStore(ctx context.Context, b *testbed.Bed) (*store, error) {
	conn, err := pgx.Connect(ctx, b.Env["SLUICE_DATABASE_URL"])
	if err != nil {
		return nil, err
	}
	s := &store{conn: conn}
	tag := keytable.TagOfKey(apikey.Hash(b.Dev["SLUICE_API_KEY"]))
	var raw []byte
	if err := conn.QueryRow(ctx, `SELECT record FROM edge_records WHERE tag = $1`, tag[:]).Scan(&raw); err != nil {
		s.close()
		return nil, fmt.Errorf("the development key's record: %w", err)
	}
	s.dev, _ = keytable.Decode(raw)
	return s, nil
}

func (s *store) close() { _ = s.conn.Close(context.Background()) }

// text is the text of the n-th key.
func (s *store) text(n int) string {
	return apikey.FormatKey(id(n), sha256.Sum256(binary.LittleEndian.AppendUint64(nil, uint64(n))))
}

// id is the number of the n-th key.
func id(n int) uint64 { return 1<<32 + uint64(n) }

// sample are keys that are spread over all that are there.
func (s *store) sample() []string {
	list := make([]string, used)
	for i := range list {
		list[i] = s.text(i * (s.size / used))
	}
	return list
}

// grow adds keys until there are n.
func (s *store) grow(ctx context.Context, n int) error {
	const batch = 20_000
	for s.size < n {
		end := min(n, s.size+batch)
		list := make([]keytable.Record, 0, batch)
		for i := s.size; i < end; i++ {
			r := s.dev
			r.Tag, r.ID = keytable.TagOfKey(apikey.Hash(s.text(i))), id(i)
			list = append(list, r)
		}
		err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error { return keyfeed.PutTx(ctx, tx, list...) })
		if err != nil {
			return err
		}
		s.size = end
	}
	// A snapshot is ten times slower without the marks of a vacuum, which marks
	// only what is known to be on disk.
	for _, sql := range []string{`CHECKPOINT`, `VACUUM ANALYZE edge_records`} {
		if _, err := s.conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
