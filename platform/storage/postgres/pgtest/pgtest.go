// Package pgtest gives each test a database of its own on a real server.
package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/migrations"
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
// migrated once per test binary, and drops it when the test ends.
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

func makeTemplate(server string) (string, error) {
	ctx, name := context.Background(), "template_"+random()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `CREATE DATABASE `+name); err != nil {
		return "", err
	}
	return name, migrations.Up(ctx, withDatabase(server, name))
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
	u, err := url.Parse(server)
	if err != nil {
		panic(err)
	}
	u.Path = "/" + name
	return u.String()
}

func random() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
