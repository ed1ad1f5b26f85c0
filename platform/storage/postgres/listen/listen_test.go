package listen

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// run has a listener listen until the test ends, on connections that are counted.
func run(t *testing.T, url string, ask func(*Listener)) *atomic.Int32 {
	t.Helper()
	var connections atomic.Int32
	l := New(func(ctx context.Context) (*pgx.Conn, error) {
		if connections.Add(1) == 1 {
			return nil, errors.New("the database is away")
		}
		return pgx.Connect(ctx, url)
	}, slog.New(slog.DiscardHandler))
	ask(l)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return &connections
}

// Everybody hears of their channel and no other, on one connection. What may have been
// missed while there was none counts as announced.
func TestOneConnectionForAll(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	var a, alsoA, b <-chan struct{}
	connections := run(t, url, func(l *Listener) { a, alsoA, b = l.On("a"), l.On("a"), l.On("b") })
	for _, c := range []<-chan struct{}{a, alsoA, b} {
		<-c // it listens
	}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(t.Context()))
	if _, err := db.Exec(t.Context(), `NOTIFY a`); err != nil {
		t.Fatal(err)
	}
	<-a
	<-alsoA
	if _, err := db.Exec(t.Context(), `NOTIFY b`); err != nil {
		t.Fatal(err)
	}
	<-b
	select {
	case <-a:
		t.Error("a hears what b is told")
	default:
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections, the one that failed included", n)
	}
	if _, err := db.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []<-chan struct{}{a, alsoA, b} {
		<-c // it is back
	}
}

// A connection to a server that has become a standby is given up, though it lives.
func TestCheck(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := check(t.Context(), conn); err != nil {
		t.Error(err)
	}
	if _, err := conn.Exec(t.Context(), `SET default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	if err := check(t.Context(), conn); !errors.Is(err, errReadOnly) {
		t.Error(err)
	}
}
