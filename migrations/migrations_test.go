package migrations_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/postgres/pgtest"
	"sluice.dev/sluice/migrations"
)

func tables(t *testing.T, url string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, _ := conn.Query(t.Context(), `SELECT relname::text FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S', 'v') AND relname <> 'schema_migrations' ORDER BY 1`)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestUpDownUp(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	for range 2 {
		if err := migrations.Up(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		if len(tables(t, url)) < 10 {
			t.Fatalf("after up: %v", tables(t, url))
		}
		if err := migrations.Up(t.Context(), url); err != nil {
			t.Fatalf("a second up: %v", err)
		}
		if err := migrations.Down(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		if left := tables(t, url); len(left) > 0 {
			t.Fatalf("after down: %v", left)
		}
	}
}

func TestManyMigratorsAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	done := make(chan error)
	for range 4 {
		go func() { done <- migrations.Up(t.Context(), url) }()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestDatabaseOfANewerVersionIsRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `UPDATE schema_migrations SET version = 9999`); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), url); !errors.Is(err, migrations.ErrNewer) {
		t.Fatalf("%v, want ErrNewer", err)
	}
}
