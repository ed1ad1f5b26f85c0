package xds

import (
	"fmt"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
)

func node(gateway string) *core.Node {
	return &core.Node{Id: "n", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"gateway_addr": structpb.NewStringValue(gateway)}}}
}

func TestEdgesWithOtherAddressesHaveOtherListenersOnly(t *testing.T) {
	t.Parallel()
	s, addr := newServer(t, Config{})
	publish(t, s, 1, document(t))
	a, b := connected(t, s, addr, "a"), dial(t, addr, "b", "127.0.0.1:8180")
	b.askAll()
	b.take(5)
	for typeURL := range a.held {
		same := fmt.Sprint(a.held[typeURL]) == fmt.Sprint(b.held[typeURL])
		if same != (typeURL != resource.ListenerType) {
			t.Errorf("%s are the same: %v", shortType(typeURL), same)
		}
	}
}

// An edge that comes from another replica, or back, gets only what it lacks.
func TestEdgeThatComesBackIsSentNothingAnew(t *testing.T) {
	t.Parallel()
	one, addrOne := newServer(t, Config{})
	two, addrTwo := newServer(t, Config{})
	publish(t, one, 1, document(t))
	publish(t, two, 1, document(t))
	before := connected(t, one, addrOne, "edge-1")
	c := dial(t, addrTwo, "edge-1", "127.0.0.1:8080")
	for typeURL, held := range before.held {
		r := &discovery.DeltaDiscoveryRequest{Node: c.node, TypeUrl: typeURL, InitialResourceVersions: held}
		if typeURL != resource.ListenerType && typeURL != resource.ClusterType {
			for name := range held {
				r.ResourceNamesSubscribe = append(r.ResourceNamesSubscribe, name)
			}
		}
		if err := c.stream.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	until(t, two, func() bool { e := statusByID(two, "edge-1"); return e.Current && len(e.Types) == 5 })
	for range 2 { // wildcard subscriptions are always answered, here with nothing
		r, err := c.next()
		if err != nil || len(r.GetResources())+len(r.GetRemovedResources()) != 0 {
			t.Fatalf("%v, %v", r, err)
		}
	}
}

func TestTypeThatIsNotServedIsNeverAnswered(t *testing.T) {
	t.Parallel()
	s, addr := newServer(t, Config{})
	publish(t, s, 1, document(t))
	c := dial(t, addr, "edge-1", "127.0.0.1:8080")
	c.ask(resource.SecretType, "tls")
	c.ask(resource.ClusterType)
	c.take(1)
	if c.log[0] != "clusters" {
		t.Errorf("answered %v", c.log)
	}
	publish(t, s, 2, document(t)) // and nobody waits for it
}

func TestWhoIsTurnedAway(t *testing.T) {
	t.Parallel()
	s, addr := newServer(t, Config{})
	publish(t, s, 1, document(t))
	for what, c := range map[string]*client{
		"no port":    dial(t, addr, "edge-1", "127.0.0.1"),
		"a long id":  dial(t, addr, string(make([]byte, 300)), "127.0.0.1:8080"),
		"a bad port": dial(t, addr, "edge-1", "127.0.0.1:http"),
	} {
		c.ask(resource.ListenerType)
		if _, err := c.next(); status.Code(err) == codes.OK || status.Code(err) == codes.Unavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
	c := dial(t, addr, "edge-1", "127.0.0.1:8080")
	if stream, err := discovery.NewAggregatedDiscoveryServiceClient(c.conn).StreamAggregatedResources(t.Context()); err == nil {
		if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
			t.Errorf("state of the world: %v", err)
		}
	}
}

func TestAddressPairsAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t, Config{})
	publish(t, s, 1, document(t))
	for i := range maxAddressPairs {
		s.caches.listeners[resources.Addresses{Gateway: fmt.Sprintf("10.0.0.1:%d", i)}] = newTable(resource.ListenerType)
	}
	_, err := s.caches.CreateDeltaWatch(&cache.DeltaRequest{TypeUrl: resource.ListenerType, Node: node("10.0.0.2:80")}, nil, nil)
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("%v", err)
	}
}

func TestEdgesThatAreGoneForLongAreForgotten(t *testing.T) {
	t.Parallel()
	s, addr := newServer(t, Config{})
	publish(t, s, 1, document(t))
	c := connected(t, s, addr, "old")
	if err := c.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	until(t, s, func() bool { return !statusByID(s, "old").Connected })
	s.fleet.mu.Lock()
	s.fleet.edges["old"].lastSeen = s.fleet.now().Add(-2 * rememberedAfter)
	s.fleet.mu.Unlock()
	connected(t, s, addr, "new")
	if list := s.Edges(); len(list) != 1 || list[0].ID != "new" {
		t.Errorf("%+v", list)
	}
}
