package config_test

import (
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
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
