package certificates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/process/pause"
)

const (
	// leaderLock is the advisory lock of the replica that asks authorities.
	leaderLock = 0x736c7563657274
	// lookEvery is how often it looks for what is due when nothing is announced.
	lookEvery = 30 * time.Second
	// retryLead is after what time another replica tries to lead, or one that failed.
	retryLead = 2 * time.Second
	// maxAttempts bounds the attempts at a time.
	maxAttempts = 8
	// edgesTime bounds how long an attempt waits for edges, and lookForEdges is how often
	// it looks. Those that lag behind must not hold up a certificate for ever.
	edgesTime    = 30 * time.Second
	lookForEdges = 200 * time.Millisecond
	// attemptTime bounds one.
	attemptTime = 10 * time.Minute
)

// Manager has authorities issue the certificates that the configuration asks for, and
// renew them. Of all replicas one does, which holds an advisory lock of a session, so
// that no pooler may stand between; when it ends, or loses its connection to the
// database, the lock is free and another goes on.
//
// A replica that has lost the lock without noticing may finish an attempt beside
// another: the authority issues twice, and the pair that is written last is in force.
type Manager struct {
	Store    Store
	Connect  func(context.Context) (*pgx.Conn, error)       // makes the connection that holds the lock
	Document func(context.Context) (config.Document, error) // that is in force
	Client   *http.Client                                   // with which authorities are called
	Hook     Hook                                           // for dns-01
	// Ready reports whether every live edge holds the newest configuration, and so
	// knows that it must answer challenges of tls-alpn-01.
	Ready func(context.Context) (bool, error)
	Log   *slog.Logger // nil: slog.Default

	mu      sync.Mutex
	running map[string]bool // by name
	seats   chan struct{}
	done    sync.WaitGroup
}

func (m *Manager) log() *slog.Logger { return cmp.Or(m.Log, slog.Default()) }

// Run works until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	m.running, m.seats = map[string]bool{}, make(chan struct{}, maxAttempts)
	for ctx.Err() == nil {
		if err := m.lead(ctx); err != nil && ctx.Err() == nil {
			m.log().Warn("certificates are not renewed by this replica for now", "cause", err)
		}
		pause.For(ctx, retryLead)
	}
	m.done.Wait()
}

// lead does what is due for as long as this replica holds the lock.
func (m *Manager) lead(ctx context.Context) error {
	conn, err := m.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for mine := false; !mine; {
		if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, int64(leaderLock)).Scan(&mine); err != nil {
			return err
		}
		if !mine && !pause.For(ctx, retryLead) {
			return nil
		}
	}
	for _, channel := range []string{config.Channel, Channel} {
		if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
			return err
		}
	}
	ctx, end := context.WithCancel(ctx)
	defer m.done.Wait()
	defer end()
	for {
		if err := m.pass(ctx); err != nil {
			m.log().Warn("look for certificates to renew", "cause", err)
		}
		if err := wait(ctx, conn, lookEvery); err != nil {
			return err
		}
	}
}

// wait returns nil at the next announcement, or after a time.
func wait(ctx context.Context, conn *pgx.Conn, most time.Duration) error {
	soon, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	_, err := conn.WaitForNotification(soon)
	if err != nil && soon.Err() != nil && ctx.Err() == nil && !conn.IsClosed() {
		return nil
	}
	return err
}

// pass begins what is due.
func (m *Manager) pass(ctx context.Context) error {
	d, err := m.Document(ctx)
	if err != nil {
		return err
	}
	entries := map[string]config.Certificate{}
	var list []config.Certificate
	for _, c := range d.Certificates {
		if c.ACME != nil {
			entries[c.Name] = c
			list = append(list, c)
		}
	}
	if err := m.Store.want(ctx, list); err != nil {
		return err
	}
	if err := m.Store.forget(ctx); err != nil {
		return err
	}
	all, err := m.Store.List(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if e, ok := entries[c.Name]; ok && c.Source == SourceACME {
			m.begin(ctx, e, c)
		}
	}
	return nil
}

// begin starts what is due of one certificate, unless that is under way.
func (m *Manager) begin(ctx context.Context, e config.Certificate, c Certificate) {
	now := m.Store.now()
	var do func(context.Context, config.Certificate, Certificate) error
	switch {
	case c.due(now):
		do = m.issue
	case c.shouldAsk(now):
		do = m.askWhen
	default:
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running[c.Name] {
		return
	}
	m.running[c.Name] = true
	m.done.Go(func() {
		defer func() {
			m.mu.Lock()
			delete(m.running, c.Name)
			m.mu.Unlock()
		}()
		select {
		case m.seats <- struct{}{}:
			defer func() { <-m.seats }()
		case <-ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(ctx, attemptTime)
		defer cancel()
		if err := do(ctx, e, c); err != nil && !errors.Is(err, errGone) {
			m.log().Error("certificate", "name", c.Name, "cause", err)
		}
	})
}

// awaitEdges returns when edges answer challenges of e, or have had time to.
func (m *Manager) awaitEdges(ctx context.Context, e config.Certificate) {
	if e.ACME.Challenge != config.TLSALPN01 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, edgesTime)
	defer cancel()
	for pause.For(ctx, lookForEdges) {
		if ready, err := m.Ready(ctx); ready && err == nil {
			return
		}
	}
}

// issue has a certificate issued. What fails is stored, with when to try again.
func (m *Manager) issue(ctx context.Context, e config.Certificate, c Certificate) error {
	m.awaitEdges(ctx, e)
	p, err := m.obtain(ctx, e, c.Name)
	if err == nil {
		err = m.Store.issued(ctx, c.Name, p, e.Hosts, renewal(p.Leaf))
	}
	if err == nil {
		m.log().Info("a certificate was issued", "name", c.Name, "hosts", e.Hosts, "expires", p.Leaf.NotAfter)
		return nil
	}
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, errGone) {
		return err // another goes on
	}
	noted, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	now := m.Store.now()
	if failure := m.Store.failed(noted, c.Name, reason(err), now.Add(backOff(c.Attempts, err))); failure != nil {
		return fmt.Errorf("%w, and that could not be noted: %w", err, failure)
	}
	return err
}
