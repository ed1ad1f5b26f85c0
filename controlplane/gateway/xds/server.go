// Package xds serves the fleet of Envoys by delta ADS: it publishes a
// configuration in an order in which no request meets a route without its
// policy or its product, and it knows what each edge has accepted and refused.
package xds

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
	"sluice.dev/sluice/filters/edgeapi"
)

// Config says how a Server works.
type Config struct {
	// Resources is what the document's resources are built with.
	Resources resources.Options
	// Numbers gives the numbers of d's scopes and plans, after it has made those
	// that are missing: config.EnsureNumbers on a database.
	Numbers func(ctx context.Context, d config.Document) (config.Numbers, error)
	// AckTimeout is how long each step of a publication waits for edges that do
	// not answer. 0: 5 s.
	AckTimeout time.Duration
	// Named reports whether the other side of a stream has proved that it is the
	// named edge; streams for which it is false are refused. Nil: an edge is whom
	// it says.
	Named func(ctx context.Context, edge string) bool
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Metrics is where the server's metrics are registered; nil: nowhere.
	Metrics prometheus.Registerer
	// Log is for connections, publications and refusals; nil: slog.Default.
	Log *slog.Logger
}

// Server serves edges. Several replicas that publish the same version serve
// equal resources with equal versions, so an edge may move from one to another.
type Server struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	config   Config
	compiler compiler
	caches   *caches
	fleet    *fleet
	metrics  metrics
	streams  delta.Server
	stop     context.CancelFunc

	publishing sync.Mutex // held while a version, or certificates, are being published
	// certificates are secrets by host. publishing guards them.
	certificates map[string]*tlsv3.Secret

	mu      sync.Mutex
	version int64 // published last; 0: none yet
	wanted  int64 // being published, or published last
	current *resources.Set
}

// New returns a server that refuses edges until something is published.
func New(c Config) *Server {
	if c.AckTimeout == 0 {
		c.AckTimeout = 5 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	ctx, stop := context.WithCancel(context.Background())
	m := newMetrics(c.Metrics)
	s := &Server{config: c, compiler: compiler{options: c.Resources, checker: &config.Checker{}, builder: resources.NewBuilder(c.Resources)}, caches: newCaches(), fleet: newFleet(c.Now, c.Log, m), metrics: m, stop: stop}
	s.streams = delta.NewServer(ctx, s.caches, callbacks{s.fleet})
	return s
}

// Close ends all streams. Edges go on serving with what they have.
func (s *Server) Close() { s.stop() }

// Handler serves the discovery service over HTTP/2, which the caller's
// http.Server must allow without encryption where it has none:
// http.Protocols.SetUnencryptedHTTP2.
func (s *Server) Handler() http.Handler {
	g := grpc.NewServer()
	s.Register(g)
	return g
}

// Register adds the discovery service to g.
func (s *Server) Register(g grpc.ServiceRegistrar) {
	discovery.RegisterAggregatedDiscoveryServiceServer(g, s)
}

// DeltaAggregatedResources implements the discovery service. Before the first
// publication it refuses: an empty answer would make an edge that comes from
// another replica drop everything it has.
func (s *Server) DeltaAggregatedResources(stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	if s.Version() == 0 {
		return status.Error(codes.Unavailable, "no configuration has been loaded yet")
	}
	// Headers at once, and not with the first change: so an edge's relay learns
	// that this replica serves it.
	if err := stream.SendHeader(metadata.Pairs(edgeapi.VersionHeader, strconv.FormatInt(s.Version(), 10))); err != nil {
		return err
	}
	if s.config.Named != nil {
		stream = &namedStream{stream, s.config.Named, false}
	}
	return s.streams.DeltaStreamHandler(stream, resource.AnyType)
}

// Addresses returns where the given upstream of a document is; none for a
// ${name} that the server has no address for.
func (s *Server) Addresses(upstream string) []string {
	return s.config.Resources.Resolve(upstream)
}

// Version is the number of the version that was published last; 0 before the
// first.
func (s *Server) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// namedStream ends when its edge says that it is another than it has proved.
type namedStream struct {
	discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer
	named func(ctx context.Context, edge string) bool
	begun bool
}

// Recv implements the stream. Edges name themselves in their first request at
// least.
func (s *namedStream) Recv() (*discovery.DeltaDiscoveryRequest, error) {
	r, err := s.AggregatedDiscoveryService_DeltaAggregatedResourcesServer.Recv()
	if err != nil {
		return nil, err
	}
	if (!s.begun || r.Node != nil) && !s.named(s.Context(), r.GetNode().GetId()) {
		return nil, status.Error(codes.PermissionDenied, "the certificate is not that of the edge")
	}
	s.begun = true
	return r, nil
}

// callbacks tells the fleet what passes over the streams.
type callbacks struct{ fleet *fleet }

func (c callbacks) OnDeltaStreamOpen(context.Context, int64, string) error { return nil }

func (c callbacks) OnDeltaStreamClosed(stream int64, _ *core.Node) { c.fleet.close(stream) }

func (c callbacks) OnStreamDeltaRequest(stream int64, r *discovery.DeltaDiscoveryRequest) error {
	if len(r.GetNode().GetId()) > 256 {
		return status.Error(codes.InvalidArgument, "the node id is longer than 256 bytes")
	}
	c.fleet.request(stream, r)
	return nil
}

func (c callbacks) OnStreamDeltaResponse(stream int64, _ *discovery.DeltaDiscoveryRequest, r *discovery.DeltaDiscoveryResponse) {
	c.fleet.respond(stream, r)
}
