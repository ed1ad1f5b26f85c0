package idempotency

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

func insert(ctx context.Context, db postgres.DB, what string) error {
	_, err := db.Exec(ctx, `INSERT INTO effects (what) VALUES ($1)`, what)
	return err
}

// A store that works on a DB need not know whether it runs within a request.
func TestDBJoinsTheTransactionInTheContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	within := context.WithValue(t.Context(), contextKey{}, &running{tx: tx})
	if err := insert(within, b.db, "a"); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("failure")
	err = postgres.InTx(within, b.db, func(nested pgx.Tx) error { return errors.Join(insert(within, nested, "b"), failure) })
	if !errors.Is(err, failure) {
		t.Fatal(err)
	}
	if err := postgres.InTx(within, b.db, func(nested pgx.Tx) error { return insert(within, nested, "c") }); err != nil {
		t.Fatal(err)
	}
	rows, _ := b.db.Query(within, `SELECT what FROM effects ORDER BY what`)
	if seen, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(seen) != 2 || seen[0] != "a" || seen[1] != "c" {
		t.Fatalf("within: %v %v", seen, err)
	}
	if n := b.effects(t); n != 0 {
		t.Fatalf("%d effects are seen from outside before the commit", n)
	}
	if err := tx.Rollback(t.Context()); err != nil || b.effects(t) != 0 {
		t.Fatalf("%d effects outlive the request's transaction, %v", b.effects(t), err)
	}
	if err := insert(t.Context(), b.db, "d"); err != nil || b.effects(t) != 1 {
		t.Fatalf("outside of a request: %d effects, %v", b.effects(t), err)
	}
}

func TestAnUnreachableDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	dead, err := pgxpool.New(t.Context(), "postgres://u:p@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dead.Close)
	if _, err := (DB{dead}).Begin(t.Context()); apierror.Code(err) != decision.Unavailable {
		t.Fatal(err)
	}
}
