package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"
	"sluice.dev/sluice/dev/pgserver"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/dsn"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// server starts one that ends with the test.
func server(t *testing.T, c pgserver.Config) *pgserver.Server {
	t.Helper()
	c.Ephemeral, c.Replicated, c.Database, c.Path = true, true, "sluice", os.Getenv("PATH")
	s, err := pgserver.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// pair starts a primary and its synchronous standby, and returns their address with
// the standby first, as an operator may have written it.
func pair(t *testing.T) (primary, standby *pgserver.Server, url string) {
	t.Helper()
	primary = server(t, pgserver.Config{})
	standby = server(t, pgserver.Config{Follows: primary})
	if err := primary.Synchronous(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := func(s *pgserver.Server) string { return fmt.Sprintf("127.0.0.1:%d", s.Port()) }
	url, err := dsn.Writable(strings.Replace(primary.URL(), at(primary), at(standby)+","+at(primary), 1))
	if err != nil {
		t.Fatal(err)
	}
	return primary, standby, url
}

func open(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: 6})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// fill has the pool open all its connections, and returns the processes that serve them.
func fill(t *testing.T, pool *pgxpool.Pool) map[uint32]bool {
	t.Helper()
	pids := map[uint32]bool{}
	var held []*pgxpool.Conn
	for range pool.Config().MaxConns {
		c, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
		pids[c.Conn().PgConn().PID()] = true
	}
	for _, c := range held {
		c.Release()
	}
	return pids
}

// The primary is lost with a pool full of connections to it. At most one statement
// meets that; then the pool writes to the new primary, which has what was committed.
func TestAPoolFollowsThePrimary(t *testing.T) {
	t.Parallel()
	primary, standby, url := pair(t)
	if err := migrations.Up(t.Context(), url); err != nil {
		t.Fatalf("the schema: %v", err)
	}
	login := migrations.Login{Role: migrations.Worker, User: "worker", Password: "p"}
	if err := migrations.EnsureLogins(t.Context(), url, []migrations.Login{login}); err != nil {
		t.Fatalf("the users: %v", err)
	}
	as, err := dsn.As(url, login.User, login.Password)
	if err != nil {
		t.Fatal(err)
	}
	worker, pool := open(t, as), open(t, url)
	fill(t, worker)
	fill(t, pool)
	write := func(bit int) error {
		_, err := pool.Exec(t.Context(), `INSERT INTO scopes (name, bit) VALUES ($1, $2)`, fmt.Sprintf("a:b%d", bit), bit)
		return err
	}
	if err := write(90); err != nil {
		t.Fatal(err)
	}
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := write(91); apierror.Code(err) != decision.Unavailable {
		t.Errorf("without a primary: %v", err)
	}
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	for bit := range 6 {
		if err := write(92 + bit); err != nil {
			t.Errorf("write %d after the failover: %v", bit+1, err)
		}
	}
	var kept bool
	if err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM scopes WHERE bit = 90)`).Scan(&kept); err != nil || !kept {
		t.Errorf("what was committed on the old primary is on the new one: %v, %v", kept, err)
	}
	var failed []error
	for range 6 {
		var user string
		if err := worker.QueryRow(t.Context(), `SELECT current_user::text`).Scan(&user); err != nil {
			failed = append(failed, err)
		} else if user != "worker" {
			t.Errorf("signed in as %s", user)
		}
	}
	if len(failed) > 1 {
		t.Errorf("%d statements of a pool met the dead server: %v", len(failed), failed)
	}
}

// A server that takes no writes any more, though it answers: none of the connections
// to it stays, and the pool says that the database is away.
func TestNoConnectionStaysAtAServerThatTakesNoWrites(t *testing.T) {
	t.Parallel()
	s := server(t, pgserver.Config{})
	pool := open(t, s.URL())
	if _, err := pool.Exec(t.Context(), `CREATE TABLE kept (n int)`); err != nil {
		t.Fatal(err)
	}
	before := fill(t, pool)
	admin := open(t, s.URL()+"&default_transaction_read_only=off")
	fence := func(on string) {
		t.Helper()
		for _, sql := range []string{`ALTER SYSTEM SET default_transaction_read_only = ` + on, `SELECT pg_reload_conf()`} {
			if _, err := admin.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	fence("on")
	var refused *pgconn.PgError
	for !errors.As(insert(t.Context(), pool), &refused) { // until the reload has reached them
		if t.Context().Err() != nil {
			t.Fatal("it takes writes")
		}
	}
	if refused.Code != "25006" || apierror.Code(refused) != decision.Unavailable {
		t.Fatalf("refused by %s, which is %s", refused.Code, apierror.Code(refused))
	}
	fence("off")
	for err := insert(t.Context(), pool); err != nil; err = insert(t.Context(), pool) {
		if !errors.As(err, &refused) || refused.Code != "25006" {
			t.Fatal(err)
		}
	}
	for pid := range fill(t, pool) {
		if before[pid] {
			t.Errorf("the connection of process %d stayed", pid)
		}
	}
}

func insert(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `INSERT INTO kept VALUES (1)`)
	return err
}

// The kernel gives up a server that gives no receipt, and asks one that says nothing.
func TestConnectionsNoticeAMachineThatIsGone(t *testing.T) {
	t.Parallel()
	connect, err := postgres.Connector(postgres.Config{URL: pgtest.URL(t), Name: "a listener"})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var name string
	if err := conn.QueryRow(t.Context(), `SELECT current_setting('application_name')`).Scan(&name); err != nil || name != "a listener" {
		t.Error(name, err)
	}
	raw, err := conn.PgConn().Conn().(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for option, want := range map[int]int{unix.TCP_USER_TIMEOUT: 10_000, unix.TCP_KEEPIDLE: 5, unix.TCP_KEEPINTVL: 2, unix.TCP_KEEPCNT: 3} {
		var got int
		var failed error
		if err := raw.Control(func(fd uintptr) { got, failed = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option) }); err != nil || failed != nil || got != want {
			t.Errorf("option %d is %d, want %d: %v %v", option, got, want, err, failed)
		}
	}
}
