package postgres

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"
)

// What is known of a server that has gone without a word, as a machine does that has
// lost its power, is known by these times.
const (
	connectTime = 5 * time.Second  // for a host, unless the URL has connect_timeout
	fewerTime   = 2 * time.Second  // the same where there are others to try
	pingTime    = 3 * time.Second  // for a connection that was idle to answer
	goneAfter   = 10 * time.Second // that what was sent may stay without a receipt
	idlePing    = time.Second      // idle longer than this, a connection is asked before it is used
	idleTime    = time.Minute      // idle longer than this, it is closed: each is a process of PostgreSQL's
)

// keepAlive asks a silent server whether its machine is still there: a listener hears
// of that within 11 seconds.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

// readOnlyServer is the SQLSTATE of a write on a server that takes none: a standby, or
// a primary of before that has become one.
const readOnlyServer = "25006"

// prepare has connections notice that their server is gone, or takes no writes.
func prepare(c *pgx.ConnConfig, name string) {
	if name != "" {
		c.RuntimeParams["application_name"] = name
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTime
		if hosts(c) > 1 {
			c.ConnectTimeout = fewerTime
		}
	}
	c.DialFunc = (&net.Dialer{KeepAliveConfig: keepAlive, Control: bounded}).DialContext
	fatal := c.OnPgError
	c.OnPgError = func(conn *pgconn.PgConn, e *pgconn.PgError) bool { return e.Code != readOnlyServer && fatal(conn, e) }
}

// hosts counts the servers that are tried. One is tried with TLS and without.
func hosts(c *pgx.ConnConfig) int {
	seen := map[[2]any]bool{{c.Host, c.Port}: true}
	for _, f := range c.Fallbacks {
		seen[[2]any{f.Host, f.Port}] = true
	}
	return len(seen)
}

// bounded ends a connection whose peer gives no receipt for what was sent. The kernel
// would try for a quarter of an hour.
func bounded(network, _ string, c syscall.RawConn) (err error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	if failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(goneAfter.Milliseconds()))
	}); failed != nil {
		return failed
	}
	return err
}

// Connector returns what makes connections outside of any pool, for what lasts longer
// than a transaction: LISTEN, and locks of a session.
func Connector(c Config) (func(context.Context) (*pgx.Conn, error), error) {
	parsed, err := pgx.ParseConfig(c.URL)
	if err != nil {
		return nil, errURL
	}
	prepare(parsed, c.Name)
	return func(ctx context.Context) (*pgx.Conn, error) {
		conn, err := pgx.ConnectConfig(ctx, parsed)
		if err != nil {
			return nil, unreached{err}
		}
		return conn, nil
	}, nil
}

// watch keeps a pool from handing out connections to a server that is gone, or is not
// the primary any more. pgxpool asks only connections that were idle for a second, and
// would keep one that answers every write with 25006 for an hour.
type watch struct {
	began  time.Time
	broken atomic.Int64 // when a connection was last found broken, since began; 0: none was
	pool   atomic.Pointer[pgxpool.Pool]
}

// over installs a watch. Its pool is to be told to it when it is made.
func over(c *pgxpool.Config) *watch {
	w := &watch{began: time.Now()}
	next := c.ConnConfig.OnPgError
	c.ConnConfig.OnPgError = func(conn *pgconn.PgConn, e *pgconn.PgError) bool {
		if pool := w.pool.Load(); pool != nil && e.Code == readOnlyServer {
			pool.Reset() // all of them lead to the same server
		}
		return next(conn, e)
	}
	c.ConnConfig.Tracer, c.BeforeClose = w, w.note
	c.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool {
		return p.IdleDuration > idlePing || w.doubts(p.IdleDuration)
	}
	if c.PingTimeout == 0 {
		c.PingTimeout = pingTime
	}
	if !strings.Contains(c.ConnString(), "pool_max_conn_idle_time") { // pgxpool's half an hour keeps what the start of a process needed
		c.MaxConnIdleTime = idleTime
	}
	return w
}

// note notes a connection that has been closed, and not by the pool.
func (w *watch) note(conn *pgx.Conn) {
	if conn.IsClosed() {
		w.broken.Store(int64(time.Since(w.began)))
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (w *watch) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd notes what a statement has met before the next one gets a connection:
// the pool closes broken ones when it comes to it.
func (w *watch) TraceQueryEnd(_ context.Context, conn *pgx.Conn, d pgx.TraceQueryEndData) {
	if d.Err != nil {
		w.note(conn)
	}
}

// doubts says whether a connection was found broken since another was last used, so
// long ago.
func (w *watch) doubts(idle time.Duration) bool {
	broken := time.Duration(w.broken.Load())
	return broken > 0 && time.Since(w.began)-idle <= broken
}
