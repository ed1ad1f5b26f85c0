// Package idempotency lets a client repeat a POST safely: with the header
// Idempotency-Key, a request takes effect once, and its repetitions get the
// first answer.
//
// The answer is stored in the transaction of the request's own effects. For
// that, whatever serves the request works on a [DB], which joins the
// transaction in the context. So a crash leaves both or neither, and a request
// that was cut off may simply be sent again.
//
// No transaction is held while somebody else's answer is waited for. Before a
// request calls out ([postgres.Apart], as the guarded client does by itself), what
// it has done so far is committed with a claim, which keeps repetitions away;
// afterwards it goes on in a new transaction, which takes the claim's place. So
// what a request writes after its last call still commits with its answer. A claim
// that a crash left lapses, and then a repetition runs: calls to others, and what
// was written before them, are done at least once.
package idempotency

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"sluice.dev/sluice/platform/storage/postgres"
)

// DB is a database for handlers behind [Middleware]: within a request that has
// an Idempotency-Key everything runs in the transaction of that request, and
// what would be a transaction is a savepoint. Else it is Pool.
type DB struct{ Pool postgres.DB }

// contextKey is under what a context has the *running request.
type contextKey struct{}

// now is the request's transaction, or the pool.
func (d DB) now(ctx context.Context) postgres.DB {
	if q, ok := ctx.Value(contextKey{}).(*running); ok && q.tx != nil {
		return q.tx
	}
	return d.Pool
}

// Begin starts a transaction, or sets a savepoint. A database that cannot be
// reached is service_unavailable, as from every other call of a store.
func (d DB) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := d.now(ctx).Begin(ctx)
	if err != nil {
		return tx, err
	}
	if q, ok := ctx.Value(contextKey{}).(*running); ok && q.tx != nil {
		q.savepoints++
		return &savepoint{Tx: tx, of: q}, nil
	}
	return tx, nil
}

// savepoint is a transaction within that of a request, which sees that it ends.
type savepoint struct {
	pgx.Tx
	of    *running
	ended bool
}

// Commit ends the savepoint and keeps what was done.
func (s *savepoint) Commit(ctx context.Context) error {
	s.end()
	return s.Tx.Commit(ctx)
}

// Rollback ends the savepoint and undoes what was done, unless it has ended.
func (s *savepoint) Rollback(ctx context.Context) error {
	s.end()
	return s.Tx.Rollback(ctx)
}

func (s *savepoint) end() {
	if !s.ended {
		s.ended = true
		s.of.savepoints--
	}
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
