// Package postgres opens the database and shares its connections among accounts. The
// stores themselves live beside their domain, each with its own SQL; apierror gives
// errors of the database their codes.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// DB is what stores need: *pgxpool.Pool, *pgx.Conn and pgx.Tx all have it.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Config says how to connect.
type Config struct {
	URL      string
	MaxConns int32  // 0: pgx's default, the greater of 4 and the number of cores
	Name     string // shown in pg_stat_activity
}

// errURL never holds the URL, which has a password in it.
var errURL = errors.New("the database URL does not parse: expected postgres://user:password@host:port/name")

// Open returns a pool that has answered once. The error is one line, and never
// holds the URL. Connections to a server that is gone, or takes no writes any more
// since another is the primary, do not stay in it.
func Open(ctx context.Context, c Config) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, errURL
	}
	if c.MaxConns > 0 {
		pc.MaxConns = c.MaxConns
	}
	prepare(pc.ConnConfig, c.Name)
	w := over(pc)
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	w.pool.Store(pool)
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, unreached{err}
	}
	return pool, nil
}

// unreached is a failure to connect in one line: pgx gives one for each address
// and each way that it tried.
type unreached struct{ cause error }

func (u unreached) Unwrap() error { return u.cause }

func (u unreached) Error() string {
	why := u.cause.Error()
	if e, ok := errors.AsType[*pgconn.PgError](u.cause); ok {
		why = e.Message
	} else if e, ok := errors.AsType[*net.OpError](u.cause); ok {
		why = e.Error()
	}
	why, _, _ = strings.Cut(why, "\n")
	return "the database does not answer: " + why
}

// InTx runs f in a transaction: committed if f returns nil, else rolled back.
func InTx(ctx context.Context, db DB, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db, f)
}

// Constraint returns the name of the constraint that err violates, or "".
func Constraint(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.ConstraintName
	}
	return ""
}

// NotFound turns pgx.ErrNoRows into a not_found error, and wraps any other
// error with what was being done.
func NotFound(err error, doing string) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return &apierror.Error{Code: decision.NotFound, Cause: err}
	}
	return fmt.Errorf("%s: %w", doing, err)
}
