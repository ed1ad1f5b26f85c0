//go:build clients

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/e2e/freeport"
)

// debian returns a folder with packages of Debian's in it, unpacked beside the system.
func debian(t *testing.T, packages ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, args := range [][]string{append([]string{"apt-get", "download"}, packages...), {"sh", "-c", "for p in *.deb; do dpkg -x $p . || exit 1; done"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	return dir
}

// pgbouncer starts one in transaction mode before a server, and returns the address of
// the same database at it. It learns of the users that a stack makes by asking.
func pgbouncer(t *testing.T, database string) (pooled string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := freeport.Addrs(1)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(addrs[0], ":")
	password, _ := u.User.Password()
	program := debian(t, "pgbouncer", "libc-ares2", "libevent-2.1-7")
	dir := tempDir(t) // its user reads there, and it runs as no superuser
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"userlist.txt": fmt.Sprintf("%q %q\n", u.User.Username(), password),
		"pgbouncer.ini": fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%s auth_user=%s
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
auth_query = SELECT usename, passwd FROM pg_shadow WHERE usename = $1
admin_users = %[2]s
pool_mode = transaction
default_pool_size = 20
max_client_conn = 400
`, u.Port(), u.User.Username(), host, port, filepath.Join(dir, "userlist.txt")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{filepath.Join(dir, "pgbouncer.ini")}
	if os.Geteuid() == 0 {
		args = append([]string{"-u", "nobody"}, args...)
	}
	cmd := exec.Command(filepath.Join(program, "usr/sbin/pgbouncer"), args...)
	libraries, err := filepath.Glob(filepath.Join(program, "usr/lib/*-linux-gnu"))
	if err != nil || len(libraries) != 1 {
		t.Fatal(runtime.GOARCH, libraries, err)
	}
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+libraries[0])
	running(t, cmd)
	u.Host = addrs[0]
	eventually(t, "PgBouncer answers", func() error {
		conn, err := pgx.Connect(t.Context(), u.String())
		if err != nil {
			return err
		}
		return conn.Close(t.Context())
	})
	return u.String()
}

// A whole platform behind PgBouncer in transaction mode, which keeps no prepared
// statements (Debian's is older than 1.21), as docs/postgres.md has it. LISTEN, and the
// lock of a session, go past it.
func TestClientsBehindPgBouncer(t *testing.T) {
	dir := tempDir(t)
	env := settings(t, dir)
	direct := env["SLUICE_DATABASE_URL"]
	pooled := pgbouncer(t, direct)
	env["SLUICE_DATABASE_URL"], env["SLUICE_DATABASE_DIRECT_URL"] = pooled+"&default_query_exec_mode=cache_describe", direct
	env["SLUICE_WEBHOOK_ALLOW_CIDRS"] = "127.0.0.1/32"
	s := startIn(t, dir, env)
	defer func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	}()
	s.worksBehind(t)
	s.holdsApart(t, direct, pooled)
	if text := s.Output(); strings.Contains(text, "prepared statement") {
		t.Errorf("a statement was prepared elsewhere:\n%s", text)
	}
}

// worksBehind has what depends on LISTEN, on jobs and on transactions.
func (s *stack) worksBehind(t *testing.T) {
	t.Helper()
	key := s.dev["SLUICE_API_KEY"]
	hooks, got, _ := receiver(t)
	subscription := s.subscribe(t, hooks, "stream.*")
	made := s.createStream(t, key, "behind a pooler")
	start := s.createSchedule(t, key, t.Name(), made.ID, "start", soon())
	if done := s.awaitExecution(t, key, start.ID); done.Status != "success" {
		t.Errorf("%+v", done)
	}
	wantStatus(t, call(t, http.MethodDelete, s.url("/v1/streams/"+made.ID), key, nil), http.StatusNoContent)
	receive(t, got)
	wantStatus(t, call(t, http.MethodGet, subscription+"/deliveries", key, nil), http.StatusOK)
	for range 20 { // each from another connection of the pool, perhaps
		text, id := s.newKey(t, "streams:read")
		wantStatus(t, call(t, http.MethodDelete, s.url("/v1/auth/keys/"+id), s.dev["SLUICE_SESSION_TOKEN"], nil), http.StatusNoContent)
		eventually(t, "a revoked key ends", func() error {
			r, err := try(http.MethodGet, s.url("/v1/streams"), text, nil)
			return unless(err, r, http.StatusUnauthorized)
		})
	}
	if status, out, errs := sluice(t, s.cli(), "status"); status != 0 {
		t.Errorf("%d %s %s", status, out, errs)
	}
}

// holdsApart looks who is connected to PostgreSQL, and by what way.
func (s *stack) holdsApart(t *testing.T, direct, pooled string) {
	t.Helper()
	names := func(address, sql string) (list []string) {
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatal(err)
		}
		list, err = pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	lasting := names(direct, `SELECT application_name FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '%session' ORDER BY 1`)
	if want := []string{"sluice controlplane session", "sluice controlplane session", "sluice worker session"}; !slices.Equal(lasting, want) {
		t.Errorf("past the pooler are %v, want %v", lasting, want)
	}
	admin, err := url.Parse(pooled)
	if err != nil {
		t.Fatal(err)
	}
	admin.Path = "/pgbouncer"
	conn, err := pgx.Connect(t.Context(), admin.String()+"&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	clients, servers := 0, 0
	for sql, n := range map[string]*int{"SHOW CLIENTS": &clients, "SHOW SERVERS": &servers} {
		rows, err := conn.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			*n++
		}
		if err := errors.Join(rows.Err()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d clients at PgBouncer, %d connections to PostgreSQL, %d past it", clients, servers, len(lasting))
	if clients == 0 || servers > clients {
		t.Errorf("%d clients share %d connections", clients, servers)
	}
}
