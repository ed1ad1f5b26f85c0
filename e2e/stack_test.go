// Package e2e runs the shipped binary against a real Envoy and a real Postgres
// and talks to it as clients do. It imports no package of the product.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/e2e/freeport"
)

// patience bounds every wait for something that must happen.
const patience = 60 * time.Second

// need returns a variable that `make test` sets.
func need(t testing.TB, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: run `make test`", name)
	}
	return v
}

// stack is one running `sluice up` on ports and in a folder of its own.
type stack struct {
	dir string
	env map[string]string // what it was started with
	dev map[string]string // dev.env
	cmd *exec.Cmd
	out *output
	end chan error
}

// shared is the stack that most tests use; they must not break it.
var shared struct {
	sync.Once
	s *stack
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range []*stack{shared.s, withEngine.s, harsh.s} {
		if s == nil {
			continue
		}
		if err := s.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop a shared stack:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// theStack returns the shared stack, started by the first test that asks.
func theStack(t testing.TB) *stack {
	t.Helper()
	shared.Do(func() { shared.s = start(t, nil) })
	if shared.s == nil {
		t.Fatal("the shared stack did not start")
	}
	return shared.s
}

// own starts a stack for one test and stops it at the end.
func own(t testing.TB, extra map[string]string) *stack {
	t.Helper()
	s := start(t, extra)
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func start(t testing.TB, extra map[string]string) *stack {
	t.Helper()
	dir := tempDir(t)
	env := settings(t, dir)
	for k, v := range extra {
		env[k] = v
	}
	return startIn(t, dir, env)
}

// startIn starts a stack in a folder that may have been used before.
func startIn(t testing.TB, dir string, env map[string]string) *stack {
	t.Helper()
	s := &stack{dir: dir, env: env, out: &output{ready: make(chan struct{})}, end: make(chan error, 1)}
	s.cmd = command(t, s.env, "up")
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.end <- s.cmd.Wait() }()
	select {
	case <-s.out.ready:
	case err := <-s.end:
		t.Fatalf("sluice up ended: %v\n%s", err, s.out)
	case <-time.After(patience):
		_ = s.stop()
		t.Fatalf("sluice up is not ready after %v\n%s", patience, s.out)
	}
	s.dev = readEnv(t, filepath.Join(s.dir, "dev.env"))
	for name, value := range s.dev {
		if isSecret(name) {
			keepSecret(name, value)
		}
	}
	return s
}

// stop ends the stack, searches its logs for secrets and removes its folder.
func (s *stack) stop() error {
	return errors.Join(s.terminate(), s.leaks(), os.RemoveAll(s.dir))
}

// terminate ends the stack as Ctrl-C does and reports how it ended.
func (s *stack) terminate() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-s.end:
		if err != nil {
			return fmt.Errorf("sluice up: %w\n%s", err, s.out)
		}
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		return fmt.Errorf("sluice up does not stop\n%s", s.out)
	}
	return nil
}

// settings is an environment on free ports and an empty database.
func settings(t testing.TB, dir string) map[string]string {
	t.Helper()
	env := map[string]string{
		"SLUICE_STATE_DIR":    dir,
		"SLUICE_WASM_DIR":     need(t, "SLUICE_WASM_DIR"),
		"SLUICE_ENVOY":        need(t, "SLUICE_ENVOY"),
		"SLUICE_DATABASE_URL": database(t),
		"SLUICE_MEDIA_ENGINE": "off", // see studio
		"SLUICE_ANNOUNCE":     "0s",  // see TestRollingUpgrade
	}
	names := []string{"GATEWAY_ADDR", "RUNTIME_ADDR", "ADMIN_ADDR", "XDS_ADDR", "API_LISTEN", "RUNTIME_LISTEN", "MEDIA_LISTEN", "WORKER_LISTEN", "ENVOY_ADMIN_ADDR", "EDGE_METRICS_ADDR"}
	for i, addr := range freeAddrs(t, len(names)) {
		env["SLUICE_"+names[i]] = addr
	}
	return env
}

// command is the shipped binary with an environment that holds env and nothing
// else of Sluice's.
func command(t testing.TB, env map[string]string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(need(t, "SLUICE_BIN"), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SLUICE_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

// sluice runs a command to its end and returns its exit status and output.
func sluice(t testing.TB, env map[string]string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := command(t, env, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// database makes an empty database on the test server.
func database(t testing.TB) string {
	t.Helper()
	server := need(t, "SLUICE_TEST_DATABASE_URL")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	name := "e2e_" + strings.ToLower(rand.Text())
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// freeAddrs are n addresses for processes to be started.
func freeAddrs(t testing.TB, n int) []string {
	t.Helper()
	addrs, err := freeport.Addrs(n)
	if err != nil {
		t.Fatal(err)
	}
	return addrs
}

func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func readEnv(t testing.TB, name string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		if k, v, ok := strings.Cut(sc.Text(), "="); ok {
			m[k] = strings.Trim(v, `'"`)
		}
	}
	return m
}

// child returns the process id of the stack's process that runs name.
func (s *stack) child(t testing.TB, name string) int {
	t.Helper()
	for pid, args := range processes() {
		if len(args) > 1 && args[0] == need(t, "SLUICE_BIN") && args[1] == name && parent(pid) == s.cmd.Process.Pid {
			return pid
		}
	}
	t.Fatalf("the stack has no process %s", name)
	return 0
}

// processes maps the ids of all processes to their arguments.
func processes() map[int][]string {
	all := map[int][]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if b, e := os.ReadFile(filepath.Join(d, "cmdline")); err == nil && e == nil && len(b) > 0 {
			all[pid] = strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
		}
	}
	return all
}

func parent(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	if f := strings.Fields(rest); len(f) > 1 {
		n, _ := strconv.Atoi(f[1])
		return n
	}
	return 0
}

// output keeps what a process writes and tells when it says that it is ready.
type output struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	once  sync.Once
	ready chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(p)
	for line := range strings.Lines(o.buf.String()) {
		if strings.HasPrefix(line, "ready") {
			o.once.Do(func() { close(o.ready) })
		}
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

var _ io.Writer = (*output)(nil)
