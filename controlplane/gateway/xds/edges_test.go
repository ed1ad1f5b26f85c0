package xds

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
)

func newTestFleet() *fleet {
	return newFleet(func() time.Time { return time.Unix(1_800_000_000, 0) }, slog.New(slog.DiscardHandler), newMetrics(nil))
}

// says makes a request of routes on stream 1.
func says(f *fleet, r *discovery.DeltaDiscoveryRequest) *subscription {
	r.Node, r.TypeUrl = node("127.0.0.1:1"), resource.RouteType
	f.request(1, r)
	return f.edges["n"].types[resource.RouteType]
}

// sends notes a response with the given nonce; versions are name=version.
func sends(f *fleet, nonce string, removed []string, named ...string) {
	r := &discovery.DeltaDiscoveryResponse{TypeUrl: resource.RouteType, Nonce: nonce, RemovedResources: removed}
	for _, n := range named {
		name, v, _ := strings.Cut(n, "=")
		r.Resources = append(r.Resources, &discovery.Resource{Name: name, Version: v})
	}
	f.respond(1, r)
}

func TestWhatAnEdgeHoldsIsWhatItAccepted(t *testing.T) {
	t.Parallel()
	f := newTestFleet()
	s := says(f, &discovery.DeltaDiscoveryRequest{ResourceNamesSubscribe: []string{"a", "b"}})
	sends(f, "1", nil, "a=1", "b=1")
	if s.has(versions{"a": "1", "b": "1"}) {
		t.Error("what was only sent counts as held")
	}
	says(f, &discovery.DeltaDiscoveryRequest{ResponseNonce: "1"})
	if !s.has(versions{"a": "1", "b": "1", "c": "1"}) { // c it never asked for
		t.Errorf("held: %v", s.held)
	}
	sends(f, "2", []string{"b"}, "a=2")
	says(f, &discovery.DeltaDiscoveryRequest{ResponseNonce: "2", ErrorDetail: &rpc.Status{Message: "no"}})
	if s.has(versions{"a": "2"}) || !s.refused(versions{"a": "2"}) || s.refused(versions{"a": "3"}) {
		t.Errorf("held: %v, refusal: %+v", s.held, s.refusal)
	}
	sends(f, "3", []string{"b"}, "a=3")
	says(f, &discovery.DeltaDiscoveryRequest{ResponseNonce: "3"})
	if !s.has(versions{"a": "3"}) || s.refusal != nil {
		t.Errorf("held: %v, refusal: %+v", s.held, s.refusal)
	}
	says(f, &discovery.DeltaDiscoveryRequest{ResponseNonce: "77"}) // an answer to nothing
	if !s.has(versions{"a": "3"}) {
		t.Errorf("held: %v", s.held)
	}
}

func TestSubscriptionsComeAndGo(t *testing.T) {
	t.Parallel()
	f := newTestFleet()
	s := says(f, &discovery.DeltaDiscoveryRequest{})
	if !s.wildcard || s.has(versions{"a": "1"}) {
		t.Error("an empty first request asks for all")
	}
	says(f, &discovery.DeltaDiscoveryRequest{ResourceNamesUnsubscribe: []string{"*"}, ResourceNamesSubscribe: []string{"b"}})
	if s.wildcard || !s.has(versions{"a": "1"}) || s.has(versions{"b": "1"}) {
		t.Errorf("%+v", s)
	}
	says(f, &discovery.DeltaDiscoveryRequest{ResourceNamesSubscribe: []string{"*"}, ResourceNamesUnsubscribe: []string{"b"}})
	if !s.wildcard || len(s.names) != 0 {
		t.Errorf("%+v", s)
	}
}

func TestEdgeCannotMakeTheServerRememberMuch(t *testing.T) {
	t.Parallel()
	f := newTestFleet()
	s := says(f, &discovery.DeltaDiscoveryRequest{})
	for i := range 10 * maxPending {
		sends(f, fmt.Sprint(i), nil, "a=1")
	}
	if len(s.pending) > maxPending {
		t.Errorf("%d responses are remembered", len(s.pending))
	}
	says(f, &discovery.DeltaDiscoveryRequest{ResponseNonce: "1", ErrorDetail: &rpc.Status{Message: strings.Repeat("x", 1<<20)}})
	if len(s.refusal.Reason) != maxReasonBytes {
		t.Errorf("%d bytes of a reason are remembered", len(s.refusal.Reason))
	}
}

func TestSecondStreamOfAnEdgeTakesTheFirstOnesPlace(t *testing.T) {
	t.Parallel()
	f := newTestFleet()
	says(f, &discovery.DeltaDiscoveryRequest{})
	f.request(2, &discovery.DeltaDiscoveryRequest{Node: node("127.0.0.1:1"), TypeUrl: resource.ClusterType})
	f.close(1)
	if e := f.edges["n"]; e.stream != 2 || len(f.streams) != 1 || e.types[resource.RouteType] != nil {
		t.Errorf("%+v", e)
	}
	f.close(2)
	f.close(3) // never opened
	if e := f.edges["n"]; e.stream != 0 || len(f.streams) != 0 {
		t.Errorf("%+v", e)
	}
}
