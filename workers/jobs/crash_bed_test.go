package jobs_test

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/dev/pgserver"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/process/child"
)

// crashBed is two worker processes on a durable database server of their own,
// all of which can be killed.
type crashBed struct {
	t      *testing.T
	dir    string
	worker string // variable that makes this test binary a worker
	server *pgserver.Server
	pool   *pgxpool.Pool
	procs  [2]*child.Process
}

// crashRounds is how many crashes there are: 20, or SLUICE_TEST_CRASH_ROUNDS,
// of which 200 is the long form.
func crashRounds() int {
	if n, err := strconv.Atoi(os.Getenv("SLUICE_TEST_CRASH_ROUNDS")); err == nil {
		return n
	}
	return 20
}

// newCrashBed starts the server; startWorkers starts the workers.
func newCrashBed(t *testing.T, worker string) *crashBed {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // the server runs as another user
		t.Fatal(err)
	}
	c := &crashBed{t: t, dir: dir, worker: worker}
	c.startDatabase()
	t.Cleanup(func() { _ = c.server.Stop() })
	if err := migrations.Up(t.Context(), c.server.URL()); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.pool, err = pgxpool.New(t.Context(), c.server.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.pool.Close)
	return c
}

func (c *crashBed) startDatabase() {
	c.t.Helper()
	port := 0
	if c.server != nil {
		port = c.server.Port()
	}
	server, err := pgserver.Start(context.Background(), pgserver.Config{Dir: c.dir + "/pg", Port: port, Path: os.Getenv("PATH")})
	if err != nil {
		c.t.Fatal(err)
	}
	c.server = server
}

// restartDatabase ends the server without a shutdown: it has to recover.
func (c *crashBed) restartDatabase() {
	c.t.Helper()
	if err := syscall.Kill(c.server.PID(), syscall.SIGQUIT); err != nil {
		c.t.Fatal(err)
	}
	<-c.server.Done()
	if err := c.server.Stop(); err != nil {
		c.t.Fatal(err)
	}
	c.startDatabase()
}

func (c *crashBed) startWorkers() {
	c.t.Helper()
	for i := range c.procs {
		c.startWorker(i)
		c.t.Cleanup(func() { _ = c.procs[i].Stop(syscall.SIGKILL, time.Second) })
	}
}

func (c *crashBed) startWorker(i int) {
	c.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), c.worker+"="+c.server.URL())
	p, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		c.t.Fatal(err)
	}
	c.procs[i] = p
}

func (c *crashBed) killWorker(i int) {
	c.t.Helper()
	if err := c.procs[i].Signal(syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	<-c.procs[i].Done()
}

// startDead starts workers that are not there, killed or unable to begin while
// the database was down.
func (c *crashBed) startDead() {
	c.t.Helper()
	for i, p := range c.procs {
		select {
		case <-p.Done():
			c.startWorker(i)
		default:
		}
	}
}
