package pgserver_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"sluice.dev/sluice/dev/pgserver"
)

func start(t *testing.T, cfg pgserver.Config) *pgserver.Server {
	t.Helper()
	cfg.Path = os.Getenv("PATH")
	s, err := pgserver.Start(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

func query(t *testing.T, s *pgserver.Server, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var answer string
	if err := conn.QueryRow(context.Background(), sql).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

// privateFolder returns a folder that only this user can enter, as a checkout
// under /root or below mktemp -d is.
func privateFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "postgres")
	t.Cleanup(func() {
		if far, err := os.Readlink(link); err == nil {
			_ = os.RemoveAll(far)
		}
	})
	return link
}

func TestDataAndPortSurviveAStop(t *testing.T) {
	t.Parallel()
	dir := privateFolder(t)
	first := start(t, pgserver.Config{Dir: dir, Database: "sluice"})
	url := first.URL()
	exec(t, first, "CREATE TABLE kept (n int)")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, pgserver.Config{Dir: dir, Database: "sluice"})
	if second.URL() != url {
		t.Errorf("URL %s, was %s", second.URL(), url)
	}
	if got := query(t, second, "SELECT count(*)::text FROM kept"); got != "0" {
		t.Errorf("rows: %s", got)
	}
}

func exec(t *testing.T, s *pgserver.Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestAKilledServerStartsAgain(t *testing.T) {
	t.Parallel()
	dir := privateFolder(t)
	first := start(t, pgserver.Config{Dir: dir})
	exec(t, first, "CREATE TABLE kept (n int)")
	if err := syscall.Kill(first.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
	// The number in the stale file now belongs to a process that lives: this one.
	pidFile := filepath.Join(dir, "data", "postmaster.pid")
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte(strconv.Itoa(first.PID())), []byte(strconv.Itoa(os.Getpid())), 1)
	if err := os.WriteFile(pidFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, pgserver.Config{Dir: dir})
	if got := query(t, second, "SELECT count(*)::text FROM kept"); got != "0" {
		t.Errorf("rows: %s", got)
	}
}

func TestASecondUserOfTheDataIsToldWhoHasIt(t *testing.T) {
	t.Parallel()
	dir := privateFolder(t)
	start(t, pgserver.Config{Dir: dir})
	_, err := pgserver.Start(context.Background(), pgserver.Config{Dir: dir, Path: os.Getenv("PATH")})
	if err == nil || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
		t.Fatalf("err = %v, want the holder named", err)
	}
}

func TestAFixedPortInUseIsNamed(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	_, err = pgserver.Start(context.Background(), pgserver.Config{Ephemeral: true, Port: port, Path: os.Getenv("PATH")})
	if err == nil || !strings.Contains(err.Error(), "port "+strconv.Itoa(port)) {
		t.Fatalf("err = %v, want the port named", err)
	}
}

func TestAServerThatCannotStartGivesItsReason(t *testing.T) {
	t.Parallel()
	dir := privateFolder(t)
	s := start(t, pgserver.Config{Dir: dir})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "data", "global", "pg_control")); err != nil {
		t.Fatal(err)
	}
	_, err := pgserver.Start(context.Background(), pgserver.Config{Dir: dir, Path: os.Getenv("PATH")})
	if err == nil || !strings.Contains(err.Error(), "pg_control") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("err = %v, want one line that names the cause", err)
	}
}

func TestSecretsAndForeignVersions(t *testing.T) {
	t.Parallel()
	dir := privateFolder(t)
	if err := start(t, pgserver.Config{Dir: dir}).Stop(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir + ".password", dir + ".port"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", name, info, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := pgserver.Start(context.Background(), pgserver.Config{Dir: dir, Path: os.Getenv("PATH")})
	if err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 9") {
		t.Errorf("err = %v, want the version named", err)
	}
}

func TestAnEphemeralServerLeavesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, pgserver.Config{Ephemeral: true})
	data := query(t, s, "SHOW data_directory")
	if got := query(t, s, "SHOW fsync"); got != "off" {
		t.Errorf("fsync is %s", got)
	}
	if got := query(t, s, "SHOW listen_addresses"); got != "127.0.0.1" {
		t.Errorf("it listens on %s", got)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(data)); !os.IsNotExist(err) {
		t.Errorf("%s is left behind (%v)", filepath.Dir(data), err)
	}
}

func TestTheServerDoesNotRunAsRoot(t *testing.T) {
	t.Parallel()
	s := start(t, pgserver.Config{Ephemeral: true})
	info, err := os.Stat("/proc/" + strconv.Itoa(s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid == 0 {
		t.Fatal("postgres runs as root")
	}
}

// A standby has what its primary has committed, answers reads, and takes writes once it
// is promoted. The primary of before comes back as the standby of that one.
func TestAStandbyTakesOver(t *testing.T) {
	t.Parallel()
	dir := privateFolder(t)
	first := start(t, pgserver.Config{Dir: dir, Replicated: true})
	second := start(t, pgserver.Config{Ephemeral: true, Follows: first})
	if err := first.Synchronous(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, first, "CREATE TABLE kept (n int)")
	exec(t, first, "INSERT INTO kept VALUES (7)")
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := query(t, second, "SELECT pg_is_in_recovery()::text"); got != "true" {
		t.Errorf("it is a primary by itself: %s", got)
	}
	if err := second.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, second, "INSERT INTO kept SELECT n + 1 FROM kept")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, pgserver.Config{Dir: dir, Port: first.Port(), Follows: second})
	if err := second.Synchronous(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, second, "INSERT INTO kept VALUES (9)")
	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := again.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, again, "SELECT string_agg(n::text, ' ' ORDER BY n) FROM kept"); got != "7 8 9" {
		t.Errorf("after two failovers: %s", got)
	}
}
