package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"sluice.dev/sluice/bench/chaos/audit"
	"sluice.dev/sluice/bench/chaos/plan"
	"sluice.dev/sluice/dev/pgserver"
	"sluice.dev/sluice/platform/storage/postgres/dsn"
)

// database is a PostgreSQL server that can be restarted and killed, or a primary with
// a synchronous standby that takes over. They write durably, as in production.
type database struct {
	log  *os.File
	both []*member // one, or two

	mu       sync.Mutex // held while it is down
	primary  int        // in both
	followed bool       // by the other, which has all that is committed
}

// member is one server.
type member struct {
	dir    string
	port   int
	server *pgserver.Server // nil: it was never started
}

func (m *member) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(m.port)) }

func (d *database) run(ctx context.Context, m *member, follows *pgserver.Server) error {
	s, err := pgserver.Start(ctx, pgserver.Config{Dir: m.dir, Port: m.port, Database: "sluice", Path: os.Getenv("PATH"), Log: d.log,
		Replicated: len(d.both) > 1, Follows: follows, StartTimeout: patience})
	if err == nil {
		m.server = s
	}
	return err
}

// start starts the primary, and its standby if there is to be one.
func (d *database) start(ctx context.Context) error {
	if err := d.run(ctx, d.both[d.primary], nil); err != nil || len(d.both) == 1 {
		return err
	}
	return d.follow(ctx)
}

// follow makes the other server the standby of the primary, from which on every commit
// is on both.
func (d *database) follow(ctx context.Context) error {
	primary := d.both[d.primary].server
	if err := d.run(ctx, d.both[1-d.primary], primary); err != nil {
		return fmt.Errorf("start a standby: %w", err)
	}
	if err := primary.Synchronous(ctx); err != nil {
		return err
	}
	d.followed = true
	return nil
}

// through is the URL of the database as it is reached over wires, one to each server;
// none: straight to the primary of the moment, whichever that is.
func (d *database) through(addrs ...string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.both[d.primary]
	if len(addrs) > 0 { // who takes writes is the platform's to find out
		return strings.Replace(at.server.URL(), at.addr(), strings.Join(addrs, ","), 1), nil
	}
	for _, m := range d.both {
		addrs = append(addrs, m.addr())
	}
	return dsn.Writable(strings.Replace(at.server.URL(), at.addr(), strings.Join(addrs, ","), 1))
}

// pid is the primary's; 0 while it is down.
func (d *database) pid() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.both[d.primary]; m.server != nil {
		return m.server.PID()
	}
	return 0
}

// restart stops the primary, in order or by kill -9, and starts it again.
func (d *database) restart(ctx context.Context, crash bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.both[d.primary]
	if crash {
		if err := syscall.Kill(m.server.PID(), syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill PostgreSQL: %w", err)
		}
		<-m.server.Done()
	}
	if err := m.server.Stop(); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	return d.run(ctx, m, nil)
}

// failOver kills the primary and promotes the standby, says when that was, and makes a
// standby of the machine that was lost.
func (d *database) failOver(ctx context.Context, promoted func(audit.Span)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	lost, next := d.both[d.primary], d.both[1-d.primary]
	if !d.followed {
		return errors.New("there is no standby since the last failover")
	}
	d.followed = false
	from := time.Now()
	if err := lost.server.Kill(); err != nil {
		return fmt.Errorf("kill the primary: %w", err)
	}
	if err := next.server.Promote(ctx); err != nil {
		return fmt.Errorf("promote the standby: %w", err)
	}
	d.primary = 1 - d.primary
	promoted(audit.Span{From: from, To: time.Now()})
	if err := lost.server.Stop(); err != nil {
		return err
	}
	return d.follow(ctx)
}

// failOver is a fault that is noted when the standby takes writes: what comes then, a
// new standby, is no outage.
func (f *Fleet) failOver(ctx context.Context, fault plan.Fault) error {
	if len(f.database.both) < 2 {
		return fmt.Errorf("%s: there is no standby", fault.Kind)
	}
	return f.database.failOver(ctx, func(s audit.Span) { f.note(fault, s) })
}

func (d *database) stop() (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.both { // the primary first: it hands over what it has
		if m := d.both[(d.primary+i)%len(d.both)]; m.server != nil {
			if failed := m.server.Stop(); err == nil {
				err = failed
			}
		}
	}
	return err
}
