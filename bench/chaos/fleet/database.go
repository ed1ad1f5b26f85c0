package fleet

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"syscall"

	"sluice.dev/sluice/dev/pgserver"
)

// database is a PostgreSQL server that can be restarted and killed. It writes
// durably, as in production.
type database struct {
	dir  string
	port int
	log  *os.File

	mu     sync.Mutex // held while it is down
	server *pgserver.Server
}

func (d *database) start(ctx context.Context) (err error) {
	d.server, err = pgserver.Start(ctx, pgserver.Config{Dir: d.dir, Port: d.port, Database: "sluice", Path: os.Getenv("PATH"), Log: d.log})
	return err
}

// through is the URL of the database as it is reached over a wire; empty: straight.
func (d *database) through(addr string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	u, err := url.Parse(d.server.URL())
	if err != nil {
		return "", fmt.Errorf("the database's URL: %w", err)
	}
	if addr != "" {
		u.Host = addr
	}
	return u.String(), nil
}

// pid is the server's; 0 while it is down.
func (d *database) pid() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		return 0
	}
	return d.server.PID()
}

func (d *database) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(d.port)) }

// restart stops it, in order or by kill -9, and starts it again.
func (d *database) restart(ctx context.Context, crash bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if crash {
		if err := syscall.Kill(d.server.PID(), syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill PostgreSQL: %w", err)
		}
		<-d.server.Done()
	}
	if err := d.server.Stop(); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	return d.start(ctx)
}

func (d *database) stop() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		return nil
	}
	return d.server.Stop()
}
