package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/fairshare"
)

const (
	// shareWait bounds how long a request waits for one of its account's connections.
	shareWait = 5 * time.Second
	// shareWaiting is how many may wait for the connections of one account.
	shareWaiting = 512
)

// Shared is a pool in which requests of one account hold at most a quarter of the
// connections, so that statements that take long, or wait for locks, leave some to
// others. A quarter is kept for whoever has no account. Where nobody waits it costs
// a mutex and nothing else. More than may wait get rate_limit_exceeded; those that
// wait in vain get service_unavailable.
type Shared struct {
	pool    *pgxpool.Pool
	account func(context.Context) string
	places  *fairshare.Pool
}

// Share divides a pool; account names whose request a context is of, "": nobody's.
func Share(pool *pgxpool.Pool, account func(context.Context) string) *Shared {
	most := int(pool.Config().MaxConns)
	share := max(1, most/4)
	return &Shared{pool, account, fairshare.New(fairshare.Config{Places: max(1, most-share), Share: share, Waiting: shareWaiting})}
}

// enter waits for a connection of the account's.
func (s *Shared) enter(ctx context.Context) (leave func(), err error) {
	account := s.account(ctx)
	if account == "" {
		return func() {}, nil
	}
	if leave, ok := s.places.TryEnter(account); ok {
		return leave, nil
	}
	ctx, cancel := context.WithTimeout(ctx, shareWait)
	defer cancel()
	leave, err = s.places.Enter(ctx, account)
	if errors.Is(err, fairshare.ErrBusy) {
		return nil, &apierror.Error{Code: decision.RateLimited, RetryAfter: 1, Message: "The account has too many requests under way."}
	}
	if err != nil {
		return nil, &apierror.Error{Code: decision.Unavailable, RetryAfter: 1, Cause: err}
	}
	return leave, nil
}

// Begin starts a transaction, which holds a connection until it ends.
func (s *Shared) Begin(ctx context.Context) (pgx.Tx, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := s.pool.Begin(ctx)
	if err != nil && apierror.Code(err) == decision.Unavailable && !errors.As(err, new(*pgconn.ConnectError)) {
		tx, err = s.pool.Begin(ctx) // the connection was gone: nothing was done yet, and another may be there
	}
	if err != nil {
		leave()
		return nil, err
	}
	return sharedTx{tx, leave}, nil
}

// Exec runs a statement.
func (s *Shared) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer leave()
	return s.pool.Exec(ctx, sql, args...)
}

// Query runs a query, which holds a connection until its rows are closed or read.
func (s *Shared) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return noRows{err: err}, err
	}
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		leave()
		return rows, err
	}
	return sharedRows{rows, leave}, nil
}

// QueryRow runs a query that gives one row, which must be scanned.
func (s *Shared) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	leave, err := s.enter(ctx)
	if err != nil {
		return noRows{err: err}
	}
	return sharedRow{s.pool.QueryRow(ctx, sql, args...), leave}
}

// sharedTx gives the place back when the transaction ends.
type sharedTx struct {
	pgx.Tx
	leave func()
}

// Commit ends the transaction.
func (t sharedTx) Commit(ctx context.Context) error {
	defer t.leave()
	return t.Tx.Commit(ctx)
}

// Rollback ends the transaction, unless it has ended.
func (t sharedTx) Rollback(ctx context.Context) error {
	defer t.leave()
	return t.Tx.Rollback(ctx)
}

// sharedRows gives the place back when the rows are read or closed.
type sharedRows struct {
	pgx.Rows
	leave func()
}

// Next reads on, and closes after the last row.
func (r sharedRows) Next() bool {
	more := r.Rows.Next()
	if !more {
		r.leave()
	}
	return more
}

// Close ends the query.
func (r sharedRows) Close() {
	r.Rows.Close()
	r.leave()
}

// sharedRow gives the place back when the row is read.
type sharedRow struct {
	pgx.Row
	leave func()
}

// Scan reads the row.
func (r sharedRow) Scan(dest ...any) error {
	defer r.leave()
	return r.Row.Scan(dest...)
}

// noRows is a query that was not run.
type noRows struct {
	pgx.Rows // nil: nothing else is called of rows that have an error
	err      error
}

func (r noRows) Close()            {}
func (r noRows) Next() bool        { return false }
func (r noRows) Err() error        { return r.err }
func (r noRows) Scan(...any) error { return r.err }
func (r noRows) CommandTag() (t pgconn.CommandTag) {
	return t
}

// FieldDescriptions names no column.
func (r noRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
