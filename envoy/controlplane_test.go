package envoy

import (
	"context"
	"net"
	"net/http"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoverygrpc "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// fakeControlPlane serves delta ADS from memory.
type fakeControlPlane struct {
	addr  string
	cache cache.SnapshotCache
	nodes chan *core.Node // the first node that asked
}

// everyNode gives all nodes the same snapshot.
type everyNode struct{}

func (everyNode) ID(*core.Node) string { return "all" }

func newFakeControlPlane(t *testing.T) *fakeControlPlane {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeControlPlane{addr: l.Addr().String(), cache: cache.NewSnapshotCache(true, everyNode{}, nil), nodes: make(chan *core.Node, 1)}
	callbacks := server.CallbackFuncs{StreamDeltaRequestFunc: func(_ int64, req *discoverygrpc.DeltaDiscoveryRequest) error {
		select {
		case f.nodes <- req.GetNode():
		default:
		}
		return nil
	}}
	s := grpc.NewServer()
	discoverygrpc.RegisterAggregatedDiscoveryServiceServer(s, server.NewServer(context.Background(), f.cache, callbacks))
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return f
}

// publish gives the edge two listeners that answer everything with 418.
func (f *fakeControlPlane) publish(t *testing.T, cfg Config) {
	t.Helper()
	snapshot, err := cache.NewSnapshot("1", map[resource.Type][]types.Resource{
		resource.ListenerType: {teapot(t, ListenerGateway, cfg.GatewayAddr), teapot(t, ListenerRuntime, cfg.RuntimeAddr)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.cache.SetSnapshot(context.Background(), "all", snapshot); err != nil {
		t.Fatal(err)
	}
}

func teapot(t *testing.T, name, addr string) *listener.Listener {
	t.Helper()
	host, port, err := splitAddr(addr)
	if err != nil {
		t.Fatal(err)
	}
	manager := &hcm.HttpConnectionManager{
		StatPrefix: name,
		RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: &route.RouteConfiguration{VirtualHosts: []*route.VirtualHost{{
			Name: "all", Domains: []string{"*"},
			Routes: []*route.Route{{
				Match:  &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: "/"}},
				Action: &route.Route_DirectResponse{DirectResponse: &route.DirectResponseAction{Status: http.StatusTeapot}},
			}},
		}}}},
		HttpFilters: []*hcm.HttpFilter{{
			Name: "router", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(t, &router.Router{})},
		}},
	}
	return &listener.Listener{
		Name: name,
		Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
			Address: host, PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(port)},
		}}},
		FilterChains: []*listener.FilterChain{{Filters: []*listener.Filter{{
			Name: "http", ConfigType: &listener.Filter_TypedConfig{TypedConfig: pack(t, manager)},
		}}}},
	}
}

func pack(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	packed, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}
