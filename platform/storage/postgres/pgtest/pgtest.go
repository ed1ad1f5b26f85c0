// Package pgtest gives each test a database of its own on a real server.
package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/storage/postgres/dsn"
)

// Env names the variable that holds the URL of a superuser on a server that
// tests may make databases on. `make test` sets it.
const Env = "SLUICE_TEST_DATABASE_URL"

var (
	once     sync.Once
	template string
	problem  error
)

// URL makes a database with the whole schema, copied from a template that is
// migrated once per server, and drops it when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	server := os.Getenv(Env)
	if server == "" {
		t.Fatalf("%s is not set: run `make test`, or `go run ./dev/withpg go test …`", Env)
	}
	once.Do(func() { template, problem = makeTemplate(server) })
	if problem != nil {
		t.Fatal(problem)
	}
	name := "t_" + random()
	exec(t, server, `CREATE DATABASE `+name+` TEMPLATE `+template)
	t.Cleanup(func() { exec(t, server, `DROP DATABASE `+name+` WITH (FORCE)`) })
	return withDatabase(server, name)
}

// Pool is URL, opened.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Empty is like URL, without a schema.
func Empty(t testing.TB) string {
	t.Helper()
	server, name := os.Getenv(Env), "e_"+random()
	exec(t, server, `CREATE DATABASE `+name)
	t.Cleanup(func() { exec(t, server, `DROP DATABASE `+name+` WITH (FORCE)`) })
	return withDatabase(server, name)
}

// templateLock keeps others from making the same template meanwhile.
const templateLock = 0x51_1ce7

// makeTemplate returns the database of the server that has the whole schema, and makes
// it if no test binary has. It has its name once it is whole.
func makeTemplate(server string) (string, error) {
	ctx := context.Background()
	schema, err := migrations.Fingerprint()
	if err != nil {
		return "", err
	}
	name := "template_" + schema[:32]
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx) // which also gives the lock back
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, templateLock); err != nil {
		return "", err
	}
	var made bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&made); err != nil || made {
		return name, err
	}
	unfinished := name + "_unfinished"
	for _, sql := range []string{`DROP DATABASE IF EXISTS ` + unfinished + ` WITH (FORCE)`, `CREATE DATABASE ` + unfinished} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", err
		}
	}
	if err := migrations.Up(ctx, withDatabase(server, unfinished)); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, `ALTER DATABASE `+unfinished+` RENAME TO `+name)
	return name, err
}

func exec(t testing.TB, server, sql string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

func withDatabase(server, name string) string {
	text, err := dsn.On(server, name)
	if err != nil {
		panic(err)
	}
	return text
}

func random() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
