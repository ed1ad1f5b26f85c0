package xds

import (
	"testing"

	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// until waits for a change of what the server knows of its edges, until ok.
func until(t testing.TB, s *Server, ok func() bool) {
	t.Helper()
	for {
		changed := s.fleet.wait()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("it never came")
		}
	}
}

func TestEdgeGetsEverythingAndIsSeenToHoldIt(t *testing.T) {
	t.Parallel()
	s, addr := newServer(t, Config{})
	d := document(t)
	publish(t, s, 1, d)
	c := dial(t, addr, "edge-1", "127.0.0.1:8080")
	c.askAll()
	c.take(5)
	for typeURL, n := range map[string]int{
		resource.ClusterType: len(d.Products), resource.EndpointType: 3, resource.ListenerType: 2, resource.RouteType: 2, resource.ExtensionConfigType: 1,
	} {
		if got := len(c.held[typeURL]); got != n {
			t.Errorf("%s: %d resources, want %d", typeURL, got, n)
		}
	}
	until(t, s, func() bool { return s.Edges()[0].Current })
	e := s.Edges()[0]
	if e.ID != "edge-1" || !e.Connected || e.GatewayAddr != "127.0.0.1:8080" || len(e.Types) != 5 {
		t.Errorf("%+v", e)
	}
}

func TestEdgeIsTurnedAwayBeforeAnythingIsPublished(t *testing.T) {
	t.Parallel()
	_, addr := newServer(t, Config{})
	c := dial(t, addr, "edge-1", "127.0.0.1:8080")
	if _, err := c.next(); status.Code(err) != codes.Unavailable {
		t.Fatalf("%v", err)
	}
}
