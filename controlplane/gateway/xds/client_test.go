package xds

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
)

// newServer returns a server and its address. It is served as in production: by
// net/http, over HTTP/2 without encryption.
func newServer(t testing.TB, c Config) (*Server, string) {
	t.Helper()
	c.Numbers = func(_ context.Context, d config.Document) (config.Numbers, error) {
		return config.ProvisionalNumbers(d), nil
	}
	c.Resources = resources.Options{Addresses: map[string][]string{"api": {"127.0.0.1:1"}, "media": {"127.0.0.1:2"}, "runtime": {"127.0.0.1:3"}}}
	c.Log = slog.New(slog.DiscardHandler)
	s := New(c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Server{Handler: s.Handler(), Protocols: new(http.Protocols)}
	h.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = h.Serve(l) }()
	t.Cleanup(func() { s.Close(); h.Close() })
	return s, l.Addr().String()
}

func document(t testing.TB) config.Document {
	t.Helper()
	d, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func publish(t testing.TB, s *Server, version int64, d config.Document) {
	t.Helper()
	if err := s.Publish(t.Context(), version, d); err != nil {
		t.Fatal(err)
	}
}

// client is an edge as far as xDS goes. It accepts what it gets, unless refuse
// says otherwise, and keeps it.
type client struct {
	t      *testing.T
	conn   *grpc.ClientConn
	stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	node   *core.Node
	held   map[string]map[string]string // type, name: version
	log    []string                     // types in the order of arrival
	refuse func(typeURL string) bool
}

func dial(t *testing.T, addr, id, gateway string) *client {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	meta, err := structpb.NewStruct(map[string]any{"gateway_addr": gateway, "runtime_addr": "127.0.0.1:8090"})
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, conn: conn, stream: stream, node: &core.Node{Id: id, Metadata: meta}, held: map[string]map[string]string{}}
}

func (c *client) ask(typeURL string, names ...string) {
	c.t.Helper()
	err := c.stream.Send(&discovery.DeltaDiscoveryRequest{Node: c.node, TypeUrl: typeURL, ResourceNamesSubscribe: names})
	if err != nil {
		c.t.Fatal(err)
	}
}

// askAll subscribes to all that an edge subscribes to.
func (c *client) askAll() {
	c.t.Helper()
	c.ask(resource.ClusterType)
	c.ask(resource.EndpointType, "api", "media", "runtime")
	c.ask(resource.ListenerType)
	c.ask(resource.RouteType, config.Gateway, config.Runtime)
	c.ask(resource.ExtensionConfigType, resources.EdgeFilter)
}

// next takes one response and answers it.
func (c *client) next() (*discovery.DeltaDiscoveryResponse, error) {
	r, err := c.stream.Recv()
	if err != nil {
		return nil, err
	}
	answer := &discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}
	if c.refuse != nil && c.refuse(r.GetTypeUrl()) {
		answer.ErrorDetail = &status.Status{Code: 3, Message: "no, thank you"}
	} else {
		c.keep(r)
	}
	c.log = append(c.log, shortType(r.GetTypeUrl()))
	return r, c.stream.Send(answer)
}

func (c *client) keep(r *discovery.DeltaDiscoveryResponse) {
	if c.held[r.GetTypeUrl()] == nil {
		c.held[r.GetTypeUrl()] = map[string]string{}
	}
	for _, res := range r.GetResources() {
		c.held[r.GetTypeUrl()][res.GetName()] = res.GetVersion()
	}
	for _, name := range r.GetRemovedResources() {
		delete(c.held[r.GetTypeUrl()], name)
	}
}

// take is next, n times.
func (c *client) take(n int) {
	c.t.Helper()
	for range n {
		if _, err := c.next(); err != nil {
			c.t.Fatal(err)
		}
	}
}

// serve answers everything from now on, until the test ends.
func (c *client) serve() {
	go func() {
		for {
			if _, err := c.next(); err != nil {
				return
			}
		}
	}()
}
