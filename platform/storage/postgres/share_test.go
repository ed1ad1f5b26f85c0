package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

type whoseKey struct{}

func of(ctx context.Context, account string) context.Context {
	return context.WithValue(ctx, whoseKey{}, account)
}

// One account's transactions take a long time: it holds a quarter of the
// connections, whatever it asks for, and others go on at once.
func TestRequestsOfAnAccountHoldAShareOfTheConnections(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 8
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db := postgres.Share(pool, func(ctx context.Context) string { name, _ := ctx.Value(whoseKey{}).(string); return name })
	greedy := of(t.Context(), "greedy")
	var held []pgx.Tx
	for range 2 {
		tx, err := db.Begin(greedy)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, tx)
	}
	served := make(chan error, 20)
	for i := range cap(served) {
		go func() {
			var n int
			switch i % 3 {
			case 0:
				_, err := db.Exec(greedy, `SELECT 1`)
				served <- err
			case 1:
				served <- db.QueryRow(greedy, `SELECT 1`).Scan(&n)
			default:
				rows, _ := db.Query(greedy, `SELECT generate_series(1, 3)`)
				_, err := pgx.CollectRows(rows, pgx.RowTo[int])
				served <- err
			}
		}()
	}
	for _, account := range []string{"other", ""} {
		if _, err := db.Exec(of(t.Context(), account), `SELECT 1`); err != nil {
			t.Errorf("%q: %v", account, err)
		}
	}
	if n := pool.Stat().AcquiredConns(); n != 2 {
		t.Errorf("%d connections are held, want the share of 2", n)
	}
	ended, cancel := context.WithCancel(greedy)
	cancel()
	if rows, err := db.Query(ended, `SELECT 1`); err == nil {
		t.Error("there is a connection for one who has gone")
	} else if _, err := pgx.CollectRows(rows, pgx.RowTo[int]); err == nil {
		t.Error("rows that were not asked for have no error")
	}
	if err := held[0].Commit(t.Context()); err != nil {
		t.Error(err)
	}
	_ = held[0].Rollback(t.Context()) // as after every commit
	_ = held[1].Rollback(t.Context())
	for range cap(served) {
		if err := <-served; err != nil {
			t.Errorf("one that waited: %v", err)
		}
	}
}
