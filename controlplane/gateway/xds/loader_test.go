package xds

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/storage/postgres/listen"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// published returns a channel that gets the version of each publication.
func published(s *Server) chan int64 {
	c := make(chan int64, 100)
	s.config.Numbers = func(_ context.Context, d config.Document) (config.Numbers, error) {
		c <- int64(d.AnonymousPerMinute)
		return config.ProvisionalNumbers(d), nil
	}
	return c
}

// run runs l until the test ends, and waits for it then.
func run(t *testing.T, l Loader) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { l.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
}

func loader(t *testing.T, pool *pgxpool.Pool) (Loader, chan int64) {
	t.Helper()
	s, _ := newServer(t, Config{})
	heard := listen.New(func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, pool.Config().ConnConfig) }, slog.New(slog.DiscardHandler))
	l := Loader{Pool: pool, Heard: heard.On(config.Channel), Server: s, Every: time.Hour, Log: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); heard.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return l, published(s)
}

// put stores the default document with another anonymous limit, by which the
// tests know it.
func put(t *testing.T, pool *pgxpool.Pool, limit uint32) {
	t.Helper()
	d := document(t)
	d.AnonymousPerMinute = limit
	if _, err := (config.Store{DB: pool}).Put(t.Context(), d, "test", "", config.Any); err != nil {
		t.Fatal(err)
	}
}

func TestFreshDatabaseGetsTheDefault(t *testing.T) {
	t.Parallel()
	l, _ := loader(t, pgtest.Pool(t))
	if err := l.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.Server.Version() != 1 || len(l.Server.current.Clusters) != len(document(t).Products) {
		t.Errorf("version %d", l.Server.Version())
	}
}

func TestEveryReplicaPublishesWhatIsPut(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	put(t, pool, 1)
	one, seenByOne := loader(t, pool)
	two, seenByTwo := loader(t, pool)
	run(t, one)
	run(t, two)
	for want := int64(1); want <= 3; want++ {
		if a, b := <-seenByOne, <-seenByTwo; a != want || b != want {
			t.Fatalf("published %d and %d, want %d", a, b, want)
		}
		put(t, pool, uint32(want)+1)
	}
}

func TestLoaderComesBackAfterItsConnectionBroke(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	put(t, pool, 1)
	l, seen := loader(t, pool)
	run(t, l)
	<-seen
	_, err := pool.Exec(t.Context(), `
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if err != nil {
		t.Fatal(err)
	}
	put(t, pool, 2)
	if got := <-seen; got != 2 {
		t.Errorf("published %d", got)
	}
}

func TestLoaderLooksEvenWhenNothingIsAnnounced(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	put(t, pool, 1)
	l, seen := loader(t, pool)
	l.Every = time.Millisecond
	run(t, l)
	<-seen
	_, err := pool.Exec(t.Context(), `
		INSERT INTO config_versions (author, document)
		SELECT author, jsonb_set(document, '{anonymous_per_minute}', '2') FROM config_versions`)
	if err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != 2 {
		t.Errorf("published %d", got)
	}
}

// Routes ask for a scope that waits when the database says so, of the version that is in force.
func TestRoutesAskForAScopeThatWaited(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	put(t, pool, 1)
	s, _ := newServer(t, Config{})
	s.config.Numbers = func(ctx context.Context, d config.Document) (config.Numbers, error) {
		return config.EnsureNumbers(ctx, pool, d)
	}
	l := Loader{Pool: pool, Server: s}
	asks := func() (n int) {
		if err := l.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, r := range s.current.Policy.Routes {
			if r.Scope == "chat:write" {
				n++
			}
		}
		return n
	}
	if _, err := pool.Exec(t.Context(), `UPDATE chat_scopes SET asked_at = NULL`); err != nil {
		t.Fatal(err)
	}
	if n := asks() + asks(); n != 0 {
		t.Errorf("%d routes ask before the records are there", n)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE chat_scopes SET asked_at = now()`); err != nil {
		t.Fatal(err)
	}
	if asks() == 0 || s.Version() != 1 {
		t.Errorf("version %d, and no route asks", s.Version())
	}
}
