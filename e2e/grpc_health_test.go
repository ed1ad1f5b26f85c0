package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// healthy is a gRPC server that says how it is, and describes itself.
func healthy() (*grpc.Server, *health.Server) {
	state, server := health.NewServer(), grpc.NewServer()
	healthgrpc.RegisterHealthServer(server, state)
	reflection.Register(server)
	return server, state
}

// healthDocument asks for the health of a service; %s is the server's address.
const healthDocument = `
products: [{name: own, upstream: grpc://%s, health: {grpc: own.Service, interval: 100ms, unhealthy: 1}}]
routes:
  - {name: health, path: /grpc.health.v1.Health/*, methods: [POST], product: own, scope: "own:call"}
  - {name: reflection, path: "/grpc.reflection.v1.ServerReflection/*", product: own, scope: "own:call", streaming: true}
`

// An address whose service says by gRPC that it does not serve gets no calls, while another
// does.
func TestHealthByGRPC(t *testing.T) {
	t.Parallel()
	first, state := healthy()
	state.SetServingStatus("own.Service", healthgrpc.HealthCheckResponse_NOT_SERVING)
	state.SetServingStatus("asked", healthgrpc.HealthCheckResponse_SERVING)
	second, other := healthy()
	other.SetServingStatus("own.Service", healthgrpc.HealthCheckResponse_SERVING)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = second.Serve(l) }()
	t.Cleanup(second.Stop)
	s, key := gatewayTo(t, first, strings.Replace(healthDocument, "upstream: grpc://%s", "grpc: true, upstreams: [{address: '%s'}, {address: '"+l.Addr().String()+"'}]", 1), "own:call")
	c := s.rpcClient(t, key)
	// asked is known to the first server alone: the second answers NOT_FOUND.
	from := func(want codes.Code) func() error {
		return func() error {
			for range 10 {
				if got := c.call(t, "/grpc.health.v1.Health/Check", &healthgrpc.HealthCheckRequest{Service: "asked"}); got.Code() != want {
					return fmt.Errorf("%v, want %v", got.Status, want)
				}
			}
			return nil
		}
	}
	eventually(t, "the second server alone gets calls", from(codes.NotFound))
	state.SetServingStatus("own.Service", healthgrpc.HealthCheckResponse_SERVING)
	other.SetServingStatus("own.Service", healthgrpc.HealthCheckResponse_NOT_SERVING)
	eventually(t, "the first server alone gets calls", from(codes.OK))
}
