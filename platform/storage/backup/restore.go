package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/migrations"
)

// ErrNotEmpty says that there is something in the database already.
var ErrNotEmpty = errors.New("the database is not empty: restore into a fresh one")

// Options say how to restore.
type Options struct {
	// SecretsKeys are the fingerprints of the keys that the processes will have;
	// empty: not checked.
	SecretsKeys []string
}

// Restored is what Restore has done.
type Restored struct {
	Header
	Rows int64
}

// Restore fills the empty database at databaseURL with the backup in r, and brings
// it to this version's schema. Nothing of the data is there unless all of it is: a
// backup that is cut short or damaged leaves an empty schema. Edges load all keys
// anew afterwards.
func Restore(ctx context.Context, databaseURL string, r io.Reader, o Options) (out Restored, err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return out, fmt.Errorf("connect to the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := mustBeEmpty(ctx, conn); err != nil {
		return out, err
	}
	b, err := newReader(r)
	if err != nil {
		return out, err
	}
	if h := b.Header; h.SecretsKey != "" && len(o.SecretsKeys) > 0 && !slices.Contains(o.SecretsKeys, h.SecretsKey) {
		return out, errors.New("SLUICE_SECRETS_KEY is not the one of the backup: what is sealed with that could not be opened")
	}
	if err := migrations.UpTo(ctx, databaseURL, b.Header.Schema); err != nil {
		return out, err
	}
	out.Header = b.Header
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { out.Rows, err = load(ctx, tx, b); return err }); err != nil {
		return out, err
	}
	return out, migrations.Up(ctx, databaseURL)
}

func mustBeEmpty(ctx context.Context, conn *pgx.Conn) error {
	var empty bool
	err := conn.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S'))`).Scan(&empty)
	if err == nil && !empty {
		return ErrNotEmpty
	}
	return err
}

// load puts the rows into the tables, in place of those that migrations have made.
func load(ctx context.Context, tx pgx.Tx, b *reader) (total int64, err error) {
	have, err := tables(ctx, tx)
	if err == nil {
		err = known(have, b.Header.Tables)
	}
	if err != nil {
		return 0, err
	}
	names := make([]string, len(have))
	for i, t := range have {
		names[i] = pgx.Identifier{t.Name}.Sanitize()
	}
	if _, err := tx.Exec(ctx, `TRUNCATE `+strings.Join(names, ", ")); err != nil {
		return 0, fmt.Errorf("clear the tables: %w", err)
	}
	got := map[string]int64{}
	for _, t := range b.Header.Tables {
		tag, err := tx.Conn().PgConn().CopyFrom(ctx, b.rows(t.Name), "COPY "+t.sql()+" FROM STDIN")
		if err != nil {
			return 0, fmt.Errorf("fill %s: %w", t.Name, err)
		}
		got[t.Name] = tag.RowsAffected()
		total += tag.RowsAffected()
	}
	e, err := b.end()
	if err != nil {
		return 0, err
	}
	for name, n := range got {
		if e.Rows[name] != n {
			return 0, fmt.Errorf("%w: %s has %d rows of %d", errBroken, name, n, e.Rows[name])
		}
	}
	return total, finish(ctx, tx, e)
}

// known refuses tables and columns of list that the schema does not have.
func known(have, list []Table) error {
	for _, t := range list {
		i := slices.IndexFunc(have, func(h Table) bool { return h.Name == t.Name })
		if i < 0 {
			return fmt.Errorf("%w: no table is named %q", errBroken, t.Name)
		}
		for _, c := range t.Columns {
			if !slices.Contains(have[i].Columns, c) {
				return fmt.Errorf("%w: %s has no column %q", errBroken, t.Name, c)
			}
		}
	}
	return nil
}

// finish has sequences go on behind the rows, and edges load all keys anew: what
// they hold is of another history.
func finish(ctx context.Context, tx pgx.Tx, e End) error {
	for name, last := range e.Sequences {
		if _, err := tx.Exec(ctx, `SELECT setval($1::text::regclass, $2)`, pgx.Identifier{name}.Sanitize(), last); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	_, err := tx.Exec(ctx, `UPDATE edge_feed SET epoch = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`)
	return err
}
