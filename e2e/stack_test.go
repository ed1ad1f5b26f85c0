// Package e2e runs the shipped binary against a real Envoy and a real Postgres
// and talks to it as clients do. It imports no package of the product.
package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/e2e/freeport"
	"sluice.dev/sluice/e2e/harness"
)

// patience bounds every wait for something that must happen.
const patience = harness.Patience

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
	*harness.Process
	dir string
	env map[string]string // what it was started with
	dev map[string]string // dev.env
}

// shared is the stack that most tests use; they must not break it.
var shared struct {
	sync.Once
	s *stack
}

func TestMain(m *testing.M) {
	code := m.Run()
	all := []*stack{shared.s, withEngine.s, harsh.s}
	for _, l := range append(gateways.Drain(), platforms.Drain()...) {
		all = append(all, l.stack)
	}
	for _, s := range all {
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
	p, dev, err := harness.Up(env)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range dev {
		if isSecret(name) {
			keepSecret(name, value)
		}
	}
	return &stack{p, dir, env, dev}
}

// stop ends the stack, searches its logs for secrets and removes its folder and its
// database.
func (s *stack) stop() error {
	return errors.Join(s.Stop(), s.leaks(), dropDatabase(s.env["SLUICE_DATABASE_URL"]), os.RemoveAll(s.dir))
}

// settings is an environment on free ports and a new database. Of a media engine,
// see studio; of SLUICE_ANNOUNCE, TestRollingUpgrade.
func settings(t testing.TB, dir string) map[string]string {
	t.Helper()
	env, err := harness.Settings(dir, database(t))
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// run starts a command of the shipped binary that goes on.
func run(t testing.TB, env map[string]string, args ...string) *harness.Process {
	t.Helper()
	need(t, "SLUICE_BIN")
	return running(t, harness.Command(env, args...))
}

// running starts cmd.
func running(t testing.TB, cmd *exec.Cmd) *harness.Process {
	t.Helper()
	p, err := harness.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sluice runs a command to its end and returns its exit status and output.
func sluice(t testing.TB, env map[string]string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	need(t, "SLUICE_BIN")
	cmd := harness.Command(env, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// onServer runs a statement on the test server.
func onServer(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, os.Getenv("SLUICE_TEST_DATABASE_URL"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// databasePrefix begins the names of databases that are made here.
const databasePrefix = "e2e_"

// createDatabase makes a database on the test server, like a template if it names one,
// and returns its name and URL.
func createDatabase(template string) (name, address string, err error) {
	u, err := url.Parse(os.Getenv("SLUICE_TEST_DATABASE_URL"))
	if err != nil {
		return "", "", err
	}
	name = databasePrefix + strings.ToLower(rand.Text())
	sql := "CREATE DATABASE " + name
	if template != "" {
		sql += " TEMPLATE " + template
	}
	u.Path = "/" + name
	return name, u.String(), onServer(sql)
}

// migrated is a database that `sluice migrate` has made the schema in.
var migrated = sync.OnceValues(func() (name string, err error) {
	name, address, err := createDatabase("")
	if err == nil {
		err = harness.Run(map[string]string{"SLUICE_DATABASE_URL": address}, "migrate")
	}
	return name, err
})

// database makes a database on the test server that has the schema already, and
// nothing in it: a stack that makes the schema takes half a second of CPU for it.
func database(t testing.TB) string {
	t.Helper()
	need(t, "SLUICE_TEST_DATABASE_URL")
	need(t, "SLUICE_BIN")
	template, err := migrated()
	if err != nil {
		t.Fatal(err)
	}
	_, address, err := createDatabase(template)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// emptyDatabase makes one without a schema.
func emptyDatabase(t testing.TB) string {
	t.Helper()
	need(t, "SLUICE_TEST_DATABASE_URL")
	_, address, err := createDatabase("")
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// dropDatabase removes a database that was made here, of which it has the URL.
func dropDatabase(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	name, ours := strings.CutPrefix(u.Path, "/"+databasePrefix)
	if !ours {
		return nil
	}
	return onServer("DROP DATABASE IF EXISTS " + databasePrefix + name + " WITH (FORCE)")
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
	env, err := harness.ReadEnv(name)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// child returns the process id of the stack's process that runs name.
func (s *stack) child(t testing.TB, name string) int {
	t.Helper()
	for _, p := range harness.Children(s.PID()) {
		if len(p.Args) > 1 && p.Args[0] == need(t, "SLUICE_BIN") && p.Args[1] == name {
			return p.PID
		}
	}
	t.Fatalf("the stack has no process %s", name)
	return 0
}
