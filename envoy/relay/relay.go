// Package relay is an edge's agent between its Envoy and the control plane: it passes
// the discovery stream and the key feed on, keeps what Envoy has accepted on
// disk, and serves from there while no replica answers.
//
// It is thin. A discovery stream of Envoy is a stream to one replica, message by
// message, so what Envoy accepts or refuses reaches the control plane as Envoy
// said it, and versions are the control plane's own. When the replica goes,
// Envoy's stream ends too; it comes back at once with the versions it holds, and
// is passed to another replica. The key feed is read once, into a log, from
// which Envoy loads; see [feedLog].
//
// The state folder has mode 0700 and its files 0600: API keys are there as hashes
// only, but the feed also carries the secret that signs identity headers, and the
// discovery stream the keys of certificates; neither is encrypted on disk.
package relay

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"sluice.dev/sluice/envoy/trafficmetrics"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/x402"
)

// DefaultMaxAge is for how long an edge serves without a word from any replica.
const DefaultMaxAge = 24 * time.Hour

// Config says between whom a Relay stands.
type Config struct {
	// Upstreams are the control plane's replicas, host:port each. The first that
	// answers serves, and is kept until it fails.
	Upstreams []string
	// TLS is how replicas are called; nil: without encryption. Certificates that
	// change come through its GetClientCertificate.
	TLS *tls.Config
	// Token is what replicas ask for; empty: nothing.
	Token string
	// Edge is the name of this edge, and Build the agent's version, for reports.
	Edge, Build string
	// Outdated names files that were changed since Envoy was started from them, for
	// reports; nil: none.
	Outdated func() []string
	// Dir is the state folder; it is made if it is not there.
	Dir string
	// MaxAge is how old a saved state may be. 0: DefaultMaxAge.
	MaxAge time.Duration
	// Report is how often the edge reports when nothing changes. 0: 5 s.
	Report time.Duration
	// Now is the clock, by which the age of a saved state goes; nil: time.Now.
	Now func() time.Time
	Log *slog.Logger // nil: slog.Default
}

// Relay is the agent's side of one edge. Make it with New, then call Run.
type Relay struct {
	cfg        Config
	listener   net.Listener
	challenges net.Listener // of tls-alpn-01
	upstreams  *upstreams
	lastGood   *lastGood
	feed       *feed
	staleness  *staleness
	rateSync   *rateSync
	traffic    *trafficmetrics.Totals
	patient    chan struct{} // one entry for each question that is repeated; see askChallenge
	began      time.Time

	mu      sync.Mutex
	envoys  []*envoy // newest last
	started int64    // Envoys admitted so far
}

// keptEnvoys is how many Envoys may be connected: the one that serves, and one
// that takes over from it.
const keptEnvoys = 2

// envoy is one process that may use the relay.
type envoy struct {
	token  string
	loaded chan struct{} // closed when it has loaded the keys
	once   sync.Once

	mu              sync.Mutex
	epoch, position uint64 // of the feed, by what it asked last
}

// New reads the saved state and listens on a port of 127.0.0.1. A state file
// that is damaged is logged and put aside, as if it had never been.
func New(c Config) (*Relay, error) {
	c.fill()
	if len(c.Upstreams) == 0 {
		return nil, errors.New("no address of a control plane is given")
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	up, err := newUpstreams(c)
	if err != nil {
		return nil, err
	}
	a := newStaleness(c)
	r := &Relay{cfg: c, upstreams: up, staleness: a, lastGood: loadLastGood(c, a), rateSync: newRateSync(c), patient: make(chan struct{}, maxPatient), began: c.Now()}
	r.traffic = trafficmetrics.New(c.Now, (&routesInForce{lastGood: r.lastGood}).present)
	if r.feed, err = newFeed(c, up, a); err != nil {
		return nil, err
	}
	if r.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("listen for Envoy: %w", err)
	}
	if r.challenges, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for challenges: %w", err), r.listener.Close())
	}
	r.logSavedState()
	return r, nil
}

func (c *Config) fill() {
	if c.MaxAge == 0 {
		c.MaxAge = DefaultMaxAge
	}
	if c.Report == 0 {
		c.Report = 5 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// logSavedState logs what was found on disk.
func (r *Relay) logSavedState() {
	switch {
	case !r.staleness.known():
		r.cfg.Log.Info("no saved state: the edge is closed until a replica answers")
	case r.staleness.tooOld():
		r.cfg.Log.Warn("the saved state is too old to serve from", "age", r.staleness.age().String(), "most", r.cfg.MaxAge.String())
	default:
		r.cfg.Log.Info("there is a saved state to serve from, should no replica answer", "age", r.staleness.age().String(), "resources", r.lastGood.size(), "position", r.feed.position())
	}
}

// Addr is where Envoy finds the discovery service and the key feed.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Admit returns a token for an Envoy that is about to start. It must show it as
// Bearer token with everything it asks for. The tokens of Envoys before the last
// one are void from here on.
func (r *Relay) Admit() string {
	e := &envoy{token: rand.Text(), loaded: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started++
	r.envoys = append(r.envoys, e)
	if len(r.envoys) > keptEnvoys {
		r.envoys = r.envoys[len(r.envoys)-keptEnvoys:]
	}
	return e.token
}

// Expired returns a channel that closes when the edge must stop serving, because
// no replica has answered for longer than Config.MaxAge.
func (r *Relay) Expired() <-chan struct{} { return r.staleness.expired() }

// EnvoyEnded says that no Envoy of the edge runs any more, so that Run tells a replica
// when it returns. Without it replicas take the edge for one that is cut off.
func (r *Relay) EnvoyEnded() {
	r.rateSync.mu.Lock()
	defer r.rateSync.mu.Unlock()
	r.rateSync.ended = true
}

// Run serves Envoy until ctx ends, and then saves what there is to save.
func (r *Relay) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	s := &http.Server{Handler: r.handler(), ReadHeaderTimeout: 10 * time.Second, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	g.Go(func() error {
		if err := s.Serve(r.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve Envoy: %w", err)
		}
		return nil
	})
	g.Go(func() error { <-ctx.Done(); return s.Close() })
	g.Go(func() error { return r.serveChallenges(ctx) })
	g.Go(func() error { r.feed.run(ctx); return nil })
	g.Go(func() error { r.lastGood.run(ctx); return nil })
	g.Go(func() error { r.staleness.run(ctx); return nil })
	g.Go(func() error { r.report(ctx); return nil })
	err := g.Wait()
	r.rateSync.leave(r.upstreams)
	r.upstreams.close()
	return errors.Join(err, r.feed.close())
}

// isPaymentClaim reports whether a request claims, settles or releases a payment.
// The path counts as it was written, since that is how it is passed on: with an
// escape or a step up in it, it is none.
func isPaymentClaim(q *http.Request) bool {
	written := q.URL.EscapedPath()
	if q.Method != http.MethodPost || written != q.URL.Path || written != path.Clean(written) {
		return false
	}
	return written == x402.ClaimsPath || strings.HasPrefix(written, x402.ClaimsPath+"/")
}

// handler serves the discovery service and the feed from the log, takes what is counted for
// metrics, and passes everything else to a replica.
func (r *Relay) handler() http.Handler {
	streams := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage))
	registerStreams(streams, r)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+edgeapi.RecordsPath, func(w http.ResponseWriter, q *http.Request) {
		r.feed.serve(w, q, r.envoyByToken(q.Header.Get("Authorization")))
	})
	mux.Handle("/envoy.service.discovery.v3.AggregatedDiscoveryService/", streams)
	mux.Handle("POST "+edgeapi.CountsPath, r.rateSync.handler(r.upstreams))
	mux.Handle("POST "+edgeapi.TrafficPath, takeTraffic(r.traffic))
	mux.Handle("/", r.upstreams.proxy())
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		// Claims of payments carry an identity that the edge has signed for itself,
		// which the control plane checks.
		if isChallenge(q) {
			r.answerChallenge(w, q)
			return
		}
		if !isPaymentClaim(q) && r.envoyByToken(q.Header.Get("Authorization")) == nil {
			http.Error(w, "only this edge's Envoy may ask", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, q)
	})
}

// newest is the Envoy that was admitted last; nil: none yet.
func (r *Relay) newest() *envoy {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.envoys) == 0 {
		return nil
	}
	return r.envoys[len(r.envoys)-1]
}
