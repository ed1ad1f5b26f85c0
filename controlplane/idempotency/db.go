// Package idempotency lets a client repeat a POST safely: with the header
// Idempotency-Key, a request takes effect once, and its repetitions get the
// first answer.
//
// The answer is stored in the transaction of the request's own effects. For
// that, whatever serves the request works on a [DB], which joins the
// transaction in the context. So a crash leaves both or neither, and a request
// that was cut off may simply be sent again.
package idempotency

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"sluice.dev/sluice/controlplane/postgres"
)

// DB is a database for handlers behind [Middleware]: within a request that has
// an Idempotency-Key everything runs in the transaction of that request, and
// what would be a transaction is a savepoint. Else it is Pool.
type DB struct{ Pool postgres.DB }

// contextKey is under what a context has the request's transaction.
type contextKey struct{}

// now is the request's transaction, or the pool.
func (d DB) now(ctx context.Context) postgres.DB {
	if tx, ok := ctx.Value(contextKey{}).(pgx.Tx); ok {
		return tx
	}
	return d.Pool
}

// Begin starts a transaction, or sets a savepoint. A database that cannot be
// reached is service_unavailable, as from every other call of a store.
func (d DB) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := d.now(ctx).Begin(ctx)
	return tx, postgres.Unreachable(err)
}

// Exec runs a statement.
func (d DB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return d.now(ctx).Exec(ctx, sql, args...)
}

// Query runs a query.
func (d DB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return d.now(ctx).Query(ctx, sql, args...)
}

// QueryRow runs a query that gives one row.
func (d DB) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return d.now(ctx).QueryRow(ctx, sql, args...)
}
