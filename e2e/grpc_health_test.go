package e2e

import (
	"fmt"
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

// An address whose service says by gRPC that it does not serve gets no calls.
func TestHealthByGRPC(t *testing.T) {
	t.Parallel()
	server, state := healthy()
	state.SetServingStatus("own.Service", healthgrpc.HealthCheckResponse_SERVING)
	s, key := gatewayTo(t, server, healthDocument, "own:call")
	c := s.rpcClient(t, key)
	for _, step := range []struct {
		status healthgrpc.HealthCheckResponse_ServingStatus
		want   codes.Code
	}{{healthgrpc.HealthCheckResponse_SERVING, codes.OK}, {healthgrpc.HealthCheckResponse_NOT_SERVING, codes.Unavailable}, {healthgrpc.HealthCheckResponse_SERVING, codes.OK}} {
		state.SetServingStatus("own.Service", step.status)
		eventually(t, "a service that is "+step.status.String(), func() error {
			if got := c.call(t, "/grpc.health.v1.Health/Check", &healthgrpc.HealthCheckRequest{}); got.Code() != step.want {
				return fmt.Errorf("%v, want %v", got.Status, step.want)
			}
			return nil
		})
	}
}
