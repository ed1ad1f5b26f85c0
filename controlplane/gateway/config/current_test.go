package config_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

func TestCurrentIsNearlyNewAndOutlivesTheDatabase(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	store := config.Store{DB: pool}
	var clock atomic.Int64
	c := &config.Current{Store: store, Every: 10 * time.Second, Now: func() time.Time { return time.Unix(clock.Load(), 0) }}
	if v, err := c.Get(t.Context()); err == nil {
		t.Fatalf("there is no version yet, and got %d", v.Number)
	}
	d, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	first, err := store.Put(t.Context(), d, "a", "", config.Any)
	if err != nil {
		t.Fatal(err)
	}
	want := func(number int64) {
		t.Helper()
		if v, err := c.Get(t.Context()); err != nil || v.Number != number || len(v.Document.Routes) == 0 {
			t.Fatalf("version %d, want %d: %v", v.Number, number, err)
		}
	}
	want(first.Number)
	d.AccessLog = "off"
	second, err := store.Put(t.Context(), d, "a", "", config.Any)
	if err != nil {
		t.Fatal(err)
	}
	want(first.Number)
	clock.Add(10)
	want(second.Number)
	clock.Add(10)
	want(second.Number)
	pool.Close()
	clock.Add(10)
	want(second.Number)
}

// slow is a database that takes its time to answer.
type slow struct {
	postgres.DB
	take func()
}

func (s slow) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	s.take()
	return s.DB.QueryRow(ctx, sql, args...)
}

// A look that took longer than a version is kept is not repeated at once: many wait for it.
func TestCurrentWaitsForASlowDatabaseOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	d, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (config.Store{DB: pool}).Put(t.Context(), d, "a", "", config.Any); err != nil {
		t.Fatal(err)
	}
	clock, looks := time.Unix(1e9, 0), 0
	busy := slow{pool, func() { clock = clock.Add(2 * time.Second) }}
	c := &config.Current{Store: config.Store{DB: busy}, Now: func() time.Time { return clock }}
	if _, err := c.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool.Close()
	clock = clock.Add(2 * time.Second)
	c.Store.DB = slow{pool, func() { looks++; clock = clock.Add(2 * time.Second) }}
	for range 5 {
		if v, err := c.Get(t.Context()); err != nil || v.Number != 1 {
			t.Fatal(v.Number, err)
		}
	}
	if looks != 1 {
		t.Errorf("it looked %d times", looks)
	}
}
