// Package backup copies the database into a file and back, without the tools of
// PostgreSQL: an image with nothing but the binary can do it.
//
// A backup is what all transactions that had committed at one moment left behind,
// taken while everything runs. What comes back by itself within seconds, the
// unlogged tables of who is connected, is not in it; nor is any key that the
// processes are started with.
package backup

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Fingerprint tells keys apart and says nothing else of them; "" of no key.
func Fingerprint(secretsKey string) string {
	if secretsKey == "" {
		return ""
	}
	sum, err := hkdf.Key(sha256.New, []byte(secretsKey), nil, "sluice backup fingerprint", 8)
	if err != nil {
		panic(err) // the length is right
	}
	return hex.EncodeToString(sum)
}

// kept are the tables that the migrators of the restored database fill.
var kept = []string{"schema_migrations", "river_migration"}

// Write writes a backup of the database of conn. Of h, Build and SecretsKey are
// the caller's to fill. It returns how many rows are in it.
func Write(ctx context.Context, conn *pgx.Conn, w io.Writer, h Header) (total int64, err error) {
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := describe(ctx, tx, &h); err != nil {
			return err
		}
		b, err := newWriter(w, h)
		if err != nil {
			return err
		}
		e := End{Rows: map[string]int64{}}
		for _, t := range h.Tables {
			b.begin(t.Name)
			tag, err := conn.PgConn().CopyTo(ctx, b, "COPY "+t.sql()+" TO STDOUT")
			if err != nil {
				return fmt.Errorf("copy %s: %w", t.Name, err)
			}
			if err := b.flush(); err != nil {
				return err
			}
			e.Rows[t.Name] = tag.RowsAffected()
			total += tag.RowsAffected()
		}
		// Sequences are not part of a transaction: read last, they are past every row.
		if e.Sequences, err = sequences(ctx, tx); err != nil {
			return err
		}
		return b.close(e)
	})
	return total, err
}

// sql is the table with its columns, for COPY.
func (t Table) sql() string {
	columns := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = pgx.Identifier{c}.Sanitize()
	}
	return pgx.Identifier{t.Name}.Sanitize() + " (" + strings.Join(columns, ", ") + ")"
}

// describe fills in what the database is.
func describe(ctx context.Context, tx pgx.Tx, h *Header) error {
	h.Format = Format
	var dirty bool
	if err := tx.QueryRow(ctx, `SELECT now(), version, dirty FROM schema_migrations`).Scan(&h.Created, &h.Schema, &dirty); err != nil {
		return fmt.Errorf("this is no database of sluice: %w", err)
	}
	if dirty {
		return errors.New("a migration of the database was cut short: repair that first")
	}
	tables, err := tables(ctx, tx)
	h.Tables = tables
	return err
}

// tables lists those whose rows are kept over a crash, each after those that it
// refers to.
func tables(ctx context.Context, tx pgx.Tx) ([]Table, error) {
	rows, _ := tx.Query(ctx, `
		SELECT c.relname, (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
				WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''),
			coalesce((SELECT array_agg(DISTINCT k.confrelid::regclass::text) FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'f'), '{}')
		FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relpersistence = 'p' AND c.relname <> ALL ($1)`, kept)
	byName, refs := map[string]Table{}, map[string][]string{}
	var t Table
	var to, names []string
	if _, err := pgx.ForEachRow(rows, []any{&t.Name, &t.Columns, &to}, func() error {
		byName[t.Name], refs[t.Name] = Table{t.Name, slices.Clone(t.Columns)}, slices.Clone(to)
		names = append(names, t.Name)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	names, err := ordered(names, refs)
	list := make([]Table, len(names))
	for i, name := range names {
		list[i] = byName[name]
	}
	return list, err
}

// sequences reads the last number that each has given; those without one are left out.
func sequences(ctx context.Context, tx pgx.Tx) (map[string]int64, error) {
	rows, _ := tx.Query(ctx, `SELECT sequencename::text, last_value FROM pg_sequences WHERE schemaname = current_schema() AND last_value IS NOT NULL`)
	out := map[string]int64{}
	var name string
	var last int64
	_, err := pgx.ForEachRow(rows, []any{&name, &last}, func() error { out[name] = last; return nil })
	return out, err
}
