package resources

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// spoken is a document with a product that speaks gRPC, or does not.
func spoken(t *testing.T, grpc bool) *Set {
	t.Helper()
	d := everything()
	service := "orders.v1.Orders"
	d.Products = append(d.Products, config.Product{Name: "orders", Upstreams: []config.Upstream{{Address: "10.0.0.9:50051"}}, GRPC: grpc})
	if grpc {
		d.Products[len(d.Products)-1].Health = &config.Health{GRPC: &service}
	}
	d.Routes = append(d.Routes,
		config.Route{Name: "calls", Path: "/orders.v1.Orders/*", Product: "orders", Auth: []string{"none"}, Timeout: "3s"},
		config.Route{Name: "streams", Path: "/orders.v1.Orders/Watch", Product: "orders", Auth: []string{"none"}, Streaming: true})
	return build(t, d, Options{Addresses: map[string][]string{"media": {"10.0.0.1:80"}}, DocsBase: "https://api.example"})
}

func jsonOf(t *testing.T, m proto.Message) string {
	t.Helper()
	b, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), " ", "")
}

// A call ends by the route's timeout or the caller's grpc-timeout; a stream by the
// caller's alone.
func TestRoutesOfGRPC(t *testing.T) {
	t.Parallel()
	s := spoken(t, true)
	for name, want := range map[string]time.Duration{"calls": 3 * time.Second, "streams": 0} {
		r := s.made[name].routes[0].route
		d := r.GetRoute().GetMaxStreamDuration()
		if d == nil || d.MaxStreamDuration.AsDuration() != want || d.GrpcTimeoutHeaderMax == nil || d.GrpcTimeoutHeaderMax.AsDuration() != want || r.TypedPerFilterConfig[GRPCWebFilter] == nil {
			t.Errorf("%s: %v", name, r)
		}
	}
	c := s.Clusters["orders"]
	if !strings.Contains(jsonOf(t, c), `"http2ProtocolOptions"`) || c.HealthChecks[0].GetGrpcHealthCheck().GetServiceName() != "orders.v1.Orders" {
		t.Error(c)
	}
}

// What gRPC needs of a listener is there once a product speaks it, and not before.
func TestListenersOfGRPC(t *testing.T) {
	t.Parallel()
	for _, grpc := range []bool{false, true} {
		l, err := spoken(t, grpc).Listeners(Addresses{Gateway: "127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		text := jsonOf(t, l[config.Gateway])
		for _, part := range []string{GRPCWebFilter, "application/grpc", "grpc-status", "GRPC_STATUS"} {
			if strings.Contains(text, part) != grpc {
				t.Errorf("a product speaks gRPC: %v; %s is there: %v", grpc, part, !grpc)
			}
		}
		chain := strings.Index(text, GRPCWebFilter)
		if grpc && (chain < strings.Index(text, CORSFilter) || chain > strings.Index(text, EdgeFilter)) {
			t.Error("gRPC-web does not stand between CORS and the edge filter")
		}
	}
}

// The text of a listener's routes leaves out those that ask for headers, and has the
// methods of one path together.
func TestRouteText(t *testing.T) {
	t.Parallel()
	s := build(t, everything(), Options{Addresses: map[string][]string{"media": {"10.0.0.1:80"}}})
	text := s.routeText(config.Gateway).FilterMetadata["sluice"].Fields["routes"].GetStringValue()
	for _, line := range []string{"/v1/streams GET,HEAD * \n", "/v1/streams/* * * \n", "/v1/guarded/{id} GET,PUT,HEAD * \n", "/v1/chat POST * runtime\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	if strings.Contains(text, "beta") {
		t.Error(text)
	}
	if sum := s.routeText(config.Runtime).FilterMetadata["sluice"].Fields["sum"].GetStringValue(); sum == "" || sum == s.routeText(config.Gateway).FilterMetadata["sluice"].Fields["sum"].GetStringValue() {
		t.Error("two texts have one sum")
	}
}
