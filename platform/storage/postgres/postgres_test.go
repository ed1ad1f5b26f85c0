package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: pgtest.URL(t), MaxConns: 2, Name: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var name string
	if err := pool.QueryRow(t.Context(), `SELECT current_setting('application_name')`).Scan(&name); err != nil || name != "a test" {
		t.Fatal(name, err)
	}
}

// An error that people see is one line and holds no password.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://u:hunter2@127.0.0.1:1/x": "connection refused",
		"postgres://u:hunter2@127.0.0.1:x/x": "does not parse",
		"hunter2":                            "does not parse",
	} {
		_, err := postgres.Open(t.Context(), postgres.Config{URL: url})
		if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n\t") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestErrorsOfQueries(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	var n int
	err := pool.QueryRow(t.Context(), `SELECT 1 WHERE false`).Scan(&n)
	if got := apierror.Code(postgres.NotFound(err, "look")); got != decision.NotFound {
		t.Errorf("no row: %s", got)
	}
	_, err = pool.Exec(t.Context(), `INSERT INTO accounts (id, name, plan) VALUES ('x', 'x', 'x')`)
	if c := postgres.Constraint(err); c != "accounts_id_form" {
		t.Errorf("constraint %q", c)
	}
	if got := apierror.Code(postgres.NotFound(err, "insert")); got != decision.Internal {
		t.Errorf("a fault of ours: %s", got)
	}
	_, err = pool.Exec(t.Context(), `SELECT pg_terminate_backend(pg_backend_pid())`)
	if got := apierror.Code(err); got != decision.Unavailable {
		t.Errorf("a connection that was cut: %s: %v", got, err)
	}
	if postgres.NotFound(nil, "look") != nil || postgres.Constraint(errors.New("x")) != "" {
		t.Error("no error is no error")
	}
}

func TestInTx(t *testing.T) {
	t.Parallel()
	pool, failure := pgtest.Pool(t), errors.New("no")
	insert := func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO scopes (name, bit) VALUES ('a:b', 99)`)
		return err
	}
	err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error { return errors.Join(insert(tx), failure) })
	if !errors.Is(err, failure) {
		t.Fatal(err)
	}
	if err := postgres.InTx(t.Context(), pool, insert); err != nil {
		t.Fatalf("the failed transaction left something: %v", err)
	}
}

// A connection that ends in the middle of an answer is the database's absence.
func TestCutConnections(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"reset": &net.OpError{Op: "read", Err: syscall.ECONNRESET}, "end": io.EOF, "in the middle": io.ErrUnexpectedEOF,
	} {
		if got := apierror.Code(fmt.Errorf("query: %w", err)); got != decision.Unavailable {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := apierror.Code(context.DeadlineExceeded); got != decision.Internal {
		t.Errorf("a query that takes too long: %s", got)
	}
}

// Its answer is read; how the clock follows it is shown without one.
func TestClockOfARealDatabase(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	c := postgres.NewClock(t.Context(), pool)
	var there time.Time
	before := c.Now()
	if err := pool.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&there); err != nil {
		t.Fatal(err)
	}
	if after := c.Now(); there.Before(before.Add(-time.Second)) || there.After(after.Add(time.Second)) {
		t.Errorf("the database says %v, between %v and %v", there, before, after)
	}
}
