// Package migrations holds the schema: pairs of NNNN_verb_noun.up.sql and
// .down.sql, applied in order after the tables of River, the job queue.
package migrations

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	pgxv5 "github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed *.sql
var files embed.FS

// ErrNewer says that the database was migrated by a newer version of Sluice.
var ErrNewer = errors.New("the database is from a newer version of sluice: run that version, or restore a backup")

// lockKey serialises migrators: River's migrator takes no lock of its own.
const lockKey = 0x51_1ce0

// Up brings the database at databaseURL to the newest schema. It may run in
// several processes at once; one does the work. It returns ErrNewer when the
// database knows migrations that this binary does not. Each role of Roles then may
// do what Grants says.
func Up(ctx context.Context, databaseURL string) error {
	return run(ctx, databaseURL, func(conn *pgxv5.Conn, m *migrate.Migrate) error {
		if err := refuseNewer(m); err != nil {
			return err
		}
		if err := river(ctx, databaseURL, rivermigrate.DirectionUp, nil); err != nil {
			return err
		}
		if err := m.Up(); err != nil && !errors.Is(err, migrate.ErrNoChange) {
			return err
		}
		if err := dropUnread(ctx, conn); err != nil {
			return err
		}
		if err := indexLists(ctx, conn); err != nil {
			return err
		}
		return grantAll(ctx, conn)
	})
}

// UpTo brings an empty database to the schema of a migration, as that of a backup.
// It returns ErrNewer when this binary does not know it. River's tables are the
// newest.
func UpTo(ctx context.Context, databaseURL string, version uint) error {
	newest, err := Newest()
	if err != nil {
		return err
	}
	if version > newest {
		return fmt.Errorf("%w (it is at %d, this binary knows %d)", ErrNewer, version, newest)
	}
	return run(ctx, databaseURL, func(_ *pgxv5.Conn, m *migrate.Migrate) error {
		if err := river(ctx, databaseURL, rivermigrate.DirectionUp, nil); err != nil {
			return err
		}
		return m.Migrate(version)
	})
}

// Down removes everything that Up made, data included.
func Down(ctx context.Context, databaseURL string) error {
	return run(ctx, databaseURL, func(_ *pgxv5.Conn, m *migrate.Migrate) error {
		if err := m.Down(); err != nil && !errors.Is(err, migrate.ErrNoChange) {
			return err
		}
		return river(ctx, databaseURL, rivermigrate.DirectionDown, &rivermigrate.MigrateOpts{TargetVersion: -1})
	})
}

func run(ctx context.Context, databaseURL string, f func(*pgxv5.Conn, *migrate.Migrate) error) error {
	conn, err := pgxv5.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) // which also gives the lock back
	if err := lock(ctx, conn); err != nil {
		return fmt.Errorf("wait for other migrators: %w", err)
	}
	m, err := open(conn.Config())
	if err != nil {
		return err
	}
	defer func() { _, _ = m.Close() }()
	if err := f(conn, m); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// lock takes the lock for conn as soon as nobody has it. It asks again and again: a statement that
// waits for the lock has a snapshot, and whoever holds the lock and makes an index concurrently
// waits for the end of all older snapshots.
func lock(ctx context.Context, conn *pgxv5.Conn) error {
	for {
		var held bool
		if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lockKey).Scan(&held); err != nil || held {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// open makes a migrator with connections of its own, to the hosts of c.
func open(c *pgxv5.ConnConfig) (*migrate.Migrate, error) {
	src, err := iofs.New(files, ".")
	if err != nil {
		return nil, err
	}
	pool := stdlib.OpenDB(*c)
	db, err := pgx.WithInstance(pool, &pgx.Config{DatabaseName: "/" + c.Database}) // which is part of the lock that versions of before take
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return migrate.NewWithInstance("iofs", src, "pgx5", db)
}

func refuseNewer(m *migrate.Migrate) error {
	have, dirty, err := m.Version()
	if errors.Is(err, migrate.ErrNilVersion) {
		return nil
	}
	if err != nil {
		return err
	}
	if dirty {
		return fmt.Errorf("migration %d was cut short: restore a backup, or repair by hand and clear schema_migrations.dirty", have)
	}
	newest, err := Newest()
	if err == nil && have > newest {
		return fmt.Errorf("%w (it is at %d, this binary knows %d)", ErrNewer, have, newest)
	}
	return err
}

// Fingerprint stands for all that Up does: it differs where another version of this
// package or of River makes another schema, or grants something else.
func Fingerprint() (string, error) {
	sum := sha256.New()
	names, err := fs.Glob(files, "*.up.sql") // in order
	if err != nil {
		return "", err
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	rivers, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	if err != nil {
		return "", err
	}
	for _, m := range rivers.AllVersions() {
		fmt.Fprintf(sum, "river %d %s %q\n", m.Version, m.Name, m.SQLUp)
	}
	fmt.Fprintf(sum, "%q\n", lists)
	for _, r := range Roles {
		fmt.Fprintf(sum, "%s %v\n", r, Grants(r))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Newest is the number of the last migration in this binary.
func Newest() (uint, error) {
	src, err := iofs.New(files, ".")
	if err != nil {
		return 0, err
	}
	return newest(src)
}

func newest(src source.Driver) (uint, error) {
	v, err := src.First()
	for err == nil {
		var next uint
		if next, err = src.Next(v); err == nil {
			v = next
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return v, err
}

func river(ctx context.Context, databaseURL string, d rivermigrate.Direction, opts *rivermigrate.MigrateOpts) error {
	pool, err := pgxpool.New(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, d, opts)
	return err
}
