package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/e2e/harness"
)

// The private server of `up` keeps what was written, a second `up` reuses it
// with the same keys, and nothing runs on after the end. When its data is broken it does
// not start: one line says so.
func TestUpTwiceOnItsOwnPostgres(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"SLUICE_DATABASE_URL": ""})
	first := s.dev
	made := s.createStream(t, first["SLUICE_API_KEY"], "kept")
	if info, err := os.Stat(filepath.Join(s.dir, "dev.env")); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("dev.env: %v %v", info.Mode(), err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if left := s.processes(); len(left) > 0 {
		t.Fatalf("still running: %v", left)
	}
	again := startIn(t, s.dir, s.env)
	t.Cleanup(func() { _ = os.RemoveAll(s.dir) })
	if again.dev["SLUICE_API_KEY"] != first["SLUICE_API_KEY"] || again.dev["SLUICE_ADMIN_KEY"] != first["SLUICE_ADMIN_KEY"] {
		t.Error("the second run has other keys")
	}
	wantStatus(t, call(t, http.MethodGet, again.url("/v1/streams/"+made.ID), first["SLUICE_API_KEY"], nil), 200)
	if err := errors.Join(again.Stop(), again.leaks()); err != nil {
		t.Fatal(err)
	}
	again.breakPostgres(t)
	refusedUp(t, s.env, "postgres")
}

// breakPostgres makes the files of the stack's own server unreadable for it.
func (s *stack) breakPostgres(t *testing.T) {
	t.Helper()
	data, err := filepath.EvalSymlinks(filepath.Join(s.dir, "postgres")) // it may lie elsewhere
	if err != nil {
		t.Fatal(err)
	}
	var broken bool
	_ = filepath.Walk(data, func(name string, info os.FileInfo, err error) error {
		if err == nil && info.Name() == "pg_control" {
			broken = os.WriteFile(name, []byte("broken"), 0o600) == nil
		}
		return nil
	})
	if !broken {
		t.Fatal("pg_control was not found")
	}
}

// processes lists what runs with this stack's folder in its environment or arguments.
func (s *stack) processes() (left []string) {
	for pid, p := range harness.Processes() {
		if args := strings.Join(p.Args, " "); strings.Contains(args, s.dir) || strings.Contains(fmt.Sprint(harness.Environment(pid)), s.dir) {
			left = append(left, args)
		}
	}
	return left
}

// refusedUp runs `up` with env, and wants one line that holds all of words, exit
// status 1, and nothing left behind.
func refusedUp(t *testing.T, env map[string]string, words ...string) {
	t.Helper()
	status, out, errs := sluice(t, env, "up")
	lines := strings.Split(strings.TrimSpace(errs), "\n")
	last := lines[len(lines)-1]
	if status != 1 || !strings.HasPrefix(last, "sluice: ") || len(lines) != 1 {
		t.Fatalf("status %d\n%s\n%s", status, out, errs)
	}
	for _, w := range words {
		if !strings.Contains(last, w) {
			t.Errorf("%q does not name %q", last, w)
		}
	}
	s := stack{dir: env["SLUICE_STATE_DIR"]}
	if left := s.processes(); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"SLUICE_GATEWAY_ADDR", "SLUICE_ADMIN_ADDR", "SLUICE_XDS_ADDR"} {
		env := settings(t, tempDir(t))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		env[variable] = l.Addr().String()
		refusedUp(t, env, env[variable], "in use", variable)
	}
}

func TestBadSettings(t *testing.T) {
	t.Parallel()
	with := func(name, value string) map[string]string {
		env := settings(t, tempDir(t))
		env[name] = value
		return env
	}
	refusedUp(t, with("SLUICE_GATEWAY_ADDR", "nowhere"), "SLUICE_GATEWAY_ADDR", "host:port")
	refusedUp(t, with("SLUICE_EDGES", "99"), "SLUICE_EDGES", "1 to 8")
	refusedUp(t, with("SLUICE_ENVOY", "/no/such/envoy"), "/no/such/envoy")
	refusedUp(t, with("SLUICE_DATABASE_URL", "postgres://nobody@127.0.0.1:1/none"), "SLUICE_DATABASE_URL", "refused")
	refusedUp(t, with("SLUICE_WASM_DIR", filepath.Join(t.TempDir(), "wasm")), "make filters")
}

func TestDatabaseOfANewerVersion(t *testing.T) {
	t.Parallel()
	env := settings(t, tempDir(t))
	env["SLUICE_DATABASE_URL"] = emptyDatabase(t)
	if status, _, errs := sluice(t, env, "migrate"); status != 0 {
		t.Fatal(errs)
	}
	conn, err := pgx.Connect(t.Context(), env["SLUICE_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `UPDATE schema_migrations SET version = 9999`); err != nil {
		t.Fatal(err)
	}
	refusedUp(t, env, "newer version", "restore a backup")
}

// Ctrl-C in a terminal reaches every process of the group at once.
func TestInterruptOfTheWholeGroup(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, p := range harness.Children(s.PID()) {
		_ = syscall.Kill(p.PID, syscall.SIGINT)
	}
	_ = s.Signal(syscall.SIGINT)
	select {
	case <-s.Done():
		if err := s.Err(); err != nil {
			t.Fatalf("%v\n%s", err, s.Tail())
		}
	case <-time.After(patience):
		t.Fatalf("sluice up does not stop\n%s", s.Tail())
	}
	if left := s.processes(); len(left) > 0 {
		t.Fatalf("still running: %v", left)
	}
	_ = os.RemoveAll(s.dir)
}
