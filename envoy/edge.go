package envoy

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/envoy/standby"
	"sluice.dev/sluice/platform/process/bindcheck"
	"sluice.dev/sluice/platform/process/child"
)

// EdgeConfig says which Envoy to run and how.
type EdgeConfig struct {
	// Bootstrap is the edge's own part of the configuration. An empty Boot is
	// drawn at random for each start of Envoy, an empty AdminAddr is a free port
	// of 127.0.0.1, and zero MaxConnections is 50,000 or half of the open files
	// that the system allows, whichever is less.
	Bootstrap Config
	// Agent stands between Envoy and the control plane; nil: Envoy talks to
	// Bootstrap.ControlPlane itself, with Bootstrap.FeedToken. With an agent both
	// are set from it.
	Agent Agent
	// Binary is Envoy, see Find.
	Binary string
	// Dir becomes Envoy's working folder: it holds wasm/keysync.wasm, and every
	// other filter that the control plane names by a relative path.
	Dir string
	// StateDir gets the bootstrap file, which is a secret. Empty: Dir.
	StateDir string
	// Concurrency is the number of worker threads. Zero: one for each CPU.
	Concurrency int
	// LogLevel is Envoy's. Empty: "warning". From "debug" on, Envoy logs headers
	// with the credentials in them.
	LogLevel string
	// LogJSON has Envoy log an object a line.
	LogJSON bool
	// Output receives Envoy's own log lines, some whole ones at a time. It must not
	// block: Envoy would queue its access log in memory. Nil: standard error.
	Output io.Writer
	// Logger receives this package's. Nil: slog.Default().
	Logger *slog.Logger
	// DrainTime bounds how long requests in flight may take after the end was
	// asked for. Zero: 5 s.
	DrainTime time.Duration
	// Announce is how long an edge whose end was asked for goes on as before, but
	// for that it says so: Serving is false, and each answer closes its connection.
	// Whoever distributes connections among edges turns away meanwhile. Zero: not
	// at all.
	Announce time.Duration
	// HandOver bounds how long an Envoy that another has taken over from may finish
	// its requests. Zero: 15 min.
	HandOver time.Duration
	// DocsBase is the gateway's public address without a trailing slash, for the
	// links in error envelopes. Empty: http://GatewayAddr.
	DocsBase string
	// HandOverHung is that bound for one with a worker that hangs, which takes a CPU
	// all the while. Zero: 1 min, or HandOver if that is less.
	HandOverHung time.Duration
	// Now tells the time. Nil: time.Now.
	Now func() time.Time
	// TLS is what the standby listener speaks while Envoy cannot. Nil: plain text; it goes
	// with Bootstrap.Secrets.
	TLS *tls.Config
}

// Agent is what an edge's Envoy talks to: relay.Relay.
type Agent interface {
	// Addr is where it listens.
	Addr() string
	// Admit returns the token of an Envoy that is about to start.
	Admit() (token string)
	// Expired returns a channel that closes when Envoy must stop serving, as what
	// it holds is too old.
	Expired() <-chan struct{}
}

// Edge is one Envoy and its standby listener.
type Edge struct {
	cfg           EdgeConfig
	admin         admin
	ports         []int
	standby       *standby.Listener // nil while Envoy listens
	proc          *child.Process    // nil while no Envoy runs
	ready         chan struct{}
	standbyClosed atomic.Bool  // Envoy listens and the standby listener is closed
	draining      atomic.Bool  // the end was asked for
	unserved      atomic.Int64 // requests that the standby listener has answered
	// started are the files that proc was started from.
	started atomic.Pointer[map[string]stamp]

	reload  chan struct{}
	epoch   int      // of proc, by Envoy's count of hot restarts
	version string   // for hot restarts, of proc; two that differ cannot take over from each other
	base    string   // what Envoys of this edge share; empty: not known yet
	serving bool     // proc listens
	retired *retired // finishes its requests since proc took over; nil: none

	workers      hangDetector
	replacements replacementLimit // of replacements because of workers that hang
	hangs        atomic.Int64     // workers that were found to hang
}

// NewEdge checks the configuration and the addresses, and opens the standby listener: from
// here on clients are answered 503. Run or Close must follow. If an address is in
// use, the error is one line that names it, its holder and the variable that
// moves it, and nothing has been started.
func NewEdge(cfg EdgeConfig) (*Edge, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	e := &Edge{cfg: cfg, admin: newAdmin(cfg.Bootstrap.AdminAddr), ready: make(chan struct{}), reload: make(chan struct{}, 1)}
	for _, check := range []struct{ addr, variable string }{
		{cfg.Bootstrap.GatewayAddr, "SLUICE_GATEWAY_ADDR"},
		{cfg.Bootstrap.RuntimeAddr, "SLUICE_RUNTIME_ADDR"},
		{cfg.Bootstrap.PlainAddr, "SLUICE_PLAIN_ADDR"},
		{cfg.Bootstrap.AdminAddr, ""},
	} {
		if check.addr == "" {
			continue
		}
		if err := bindcheck.Free(check.addr, check.variable); err != nil {
			return nil, err
		}
	}
	for _, addr := range e.addrs() {
		_, port, err := splitAddr(addr)
		if err != nil {
			return nil, err
		}
		e.ports = append(e.ports, port)
	}
	return e, e.openStandby()
}

// fill sets defaults and renders the bootstrap once, to learn of mistakes early.
func (c *EdgeConfig) fill() error {
	if c.Agent != nil {
		c.Bootstrap.ControlPlane = []string{c.Agent.Addr()}
	}
	if c.Bootstrap.AdminAddr == "" {
		addr, err := freeAddr()
		if err != nil {
			return err
		}
		c.Bootstrap.AdminAddr = addr
	}
	limit, err := raiseOpenFiles()
	if err != nil {
		return err
	}
	c.Bootstrap.MaxConnections = cmp.Or(c.Bootstrap.MaxConnections, min(50_000, limit/2))
	c.StateDir = cmp.Or(c.StateDir, c.Dir)
	c.Concurrency = cmp.Or(c.Concurrency, runtime.NumCPU())
	c.LogLevel = cmp.Or(c.LogLevel, "warning")
	c.DrainTime = cmp.Or(c.DrainTime, 5*time.Second)
	c.HandOver = cmp.Or(c.HandOver, 15*time.Minute)
	c.HandOverHung = cmp.Or(c.HandOverHung, min(time.Minute, c.HandOver))
	c.DocsBase = cmp.Or(c.DocsBase, "http://"+c.Bootstrap.GatewayAddr)
	if c.Output == nil {
		c.Output = os.Stderr
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if !executable(c.Binary) {
		return fmt.Errorf("%s is no program that can be run: %w", c.Binary, ErrNotFound)
	}
	if keysync := filepath.Join(c.Dir, "wasm", "keysync.wasm"); !isFile(keysync) {
		return fmt.Errorf("%s is missing: leave SLUICE_WASM_DIR empty for the filters in the binary, or run `make filters`", keysync)
	}
	_, err = Render(c.Bootstrap)
	return err
}

// Ready is closed when Envoy listens on both addresses for the first time.
func (e *Edge) Ready() <-chan struct{} { return e.ready }

// Serving reports whether every connection from now on meets Envoy. While the
// standby listener leaves, some still meet the standby listener. It is false from the moment that
// the end is asked for.
func (e *Edge) Serving() bool { return e.standbyClosed.Load() && !e.draining.Load() }

// Reload asks for a hot restart: a new Envoy, of the binary and the filters that
// are there by then, takes over without a dropped connection.
func (e *Edge) Reload() {
	select {
	case e.reload <- struct{}{}:
	default: // it has been asked for already
	}
}

// Hangs counts the workers of Envoy that were found to hang in a request. Safe for
// use while Run runs.
func (e *Edge) Hangs() int64 { return e.hangs.Load() }

// AdminURL is the base address of Envoy's admin interface.
func (e *Edge) AdminURL() string { return e.admin.base }

// Close gives the addresses up. It is for an Edge that was never run.
func (e *Edge) Close() error { return e.closeStandby() }

func (e *Edge) addrs() []string {
	if e.cfg.Bootstrap.RuntimeAddr == "" {
		return []string{e.cfg.Bootstrap.GatewayAddr}
	}
	return []string{e.cfg.Bootstrap.GatewayAddr, e.cfg.Bootstrap.RuntimeAddr}
}

func (e *Edge) openStandby() (err error) {
	e.standbyClosed.Store(false)
	if e.standby == nil {
		e.standby, err = standby.Open(e.addrs(), e.cfg.DocsBase, e.cfg.Now, func() { e.unserved.Add(1) }, e.cfg.TLS)
	}
	return err
}

// closeStandby lets the requests that the standby listener has read be answered.
func (e *Edge) closeStandby() error {
	if e.standby == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	door := e.standby
	e.standby = nil
	if err := door.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// writeBootstrap renders the bootstrap for one start and returns its file.
func (e *Edge) writeBootstrap() (string, error) {
	cfg := e.cfg.Bootstrap
	cfg.Boot = cmp.Or(cfg.Boot, rand.Text())
	if e.cfg.Agent != nil {
		cfg.FeedToken = e.cfg.Agent.Admit()
	}
	text, err := Render(cfg)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(e.cfg.StateDir, 0o700); err != nil {
		return "", err
	}
	name, err := filepath.Abs(filepath.Join(e.cfg.StateDir, "bootstrap.yaml"))
	if err != nil {
		return "", err
	}
	return name, os.WriteFile(name, text, 0o600)
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// freeAddr returns a loopback address that nobody listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
