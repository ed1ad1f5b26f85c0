package relay

import (
	"context"
	"math/rand/v2"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/platform/process/pause"
)

const (
	// probeEvery is about how often it is tried whether a replica is back.
	probeEvery = 500 * time.Millisecond
	// maxHold bounds how long listeners wait for the keys. An Envoy that
	// opens without keys answers keyed requests 503 by itself.
	maxHold = 30 * time.Second
)

type server = discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer

// streams is the discovery service that Envoy talks to.
type streams struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	relay *Relay
}

func registerStreams(g grpc.ServiceRegistrar, r *Relay) {
	discovery.RegisterAggregatedDiscoveryServiceServer(g, streams{relay: r})
}

// DeltaAggregatedResources passes a stream of Envoy to a replica, or serves the
// saved state while there is none. Either way it ends when that changes: Envoy
// comes back at once, and says what it holds.
func (s streams) DeltaAggregatedResources(down server) error {
	r := s.relay
	md, _ := metadata.FromIncomingContext(down.Context())
	var e *envoy
	for _, v := range md.Get("authorization") {
		e = r.envoyByToken(v)
	}
	if e == nil {
		return status.Error(codes.Unauthenticated, "only this edge's Envoy may ask")
	}
	ctx, cancel := context.WithCancel(down.Context())
	defer cancel()
	up, n, err := r.upstreams.open(ctx)
	if err != nil {
		return r.serveSaved(ctx, down, e, err)
	}
	r.cfg.Log.Info("configuration comes from a replica", "replica", r.cfg.Upstreams[n])
	r.staleness.connected()
	err = r.forward(ctx, down, up, e)
	r.staleness.disconnected()
	if down.Context().Err() == nil {
		r.upstreams.failed(n)
		r.cfg.Log.Warn("the stream to a replica ended", "replica", r.cfg.Upstreams[n], "cause", err)
	}
	return status.Error(codes.Unavailable, "the stream to the replica ended")
}

// forward copies messages both ways until either side ends.
func (r *Relay) forward(ctx context.Context, down server, up client, e *envoy) error {
	session := r.lastGood.session()
	end := make(chan error, 2)
	go func() {
		for {
			q, err := down.Recv()
			if err == nil {
				session.request(q)
				err = up.Send(q)
			}
			if err != nil {
				end <- err
				return
			}
		}
	}()
	go func() {
		for {
			a, err := up.Recv()
			if err == nil {
				session.response(a)
				r.holdListeners(ctx, e, a.GetTypeUrl())
				err = down.Send(a)
			}
			if err != nil {
				end <- err
				return
			}
		}
	}()
	return <-end
}

// holdListeners keeps listeners back until Envoy has loaded the keys: an Envoy that takes
// over from another, or from the standby listener, then answers from its first request on.
func (r *Relay) holdListeners(ctx context.Context, e *envoy, typeURL string) {
	if typeURL != resource.ListenerType {
		return
	}
	timer := time.NewTimer(maxHold)
	defer timer.Stop()
	late := timer.C
	if r.staleness.known() && r.staleness.tooOld() {
		late = nil // it must not open at all
	}
	select {
	case <-e.loaded:
	case <-ctx.Done():
	case <-late:
	}
}

// serveSaved serves what Envoy accepted last, as no replica answers because of cause.
// It ends when one does, or when the state has become too old.
func (r *Relay) serveSaved(ctx context.Context, down server, e *envoy, cause error) error {
	saved, ok := r.lastGood.saved()
	if !ok || r.staleness.tooOld() {
		r.cfg.Log.Warn("no replica answers, and there is no state to serve from", "cause", cause)
		return status.Error(codes.Unavailable, "no replica answers, and there is no state to serve from")
	}
	r.cfg.Log.Warn("no replica answers: serving the saved state", "age", r.staleness.age().String(), "cause", cause)
	over := r.staleness.expired()
	requests := make(chan *discovery.DeltaDiscoveryRequest)
	go receive(ctx, down, requests)
	back := make(chan struct{})
	go r.probe(ctx, back)
	local := newLocal(saved)
	for {
		select {
		case q, open := <-requests:
			if !open {
				return nil
			}
			a := local.answer(q)
			if a == nil {
				continue
			}
			r.holdListeners(ctx, e, a.GetTypeUrl())
			if err := down.Send(a); err != nil {
				return err
			}
		case <-back:
			return status.Error(codes.Unavailable, "a replica answers again")
		case <-over:
			return status.Error(codes.Unavailable, "the saved state is too old")
		}
	}
}

// receive hands on what Envoy says, and closes c when it says no more.
func receive(ctx context.Context, down server, c chan<- *discovery.DeltaDiscoveryRequest) {
	defer close(c)
	for {
		q, err := down.Recv()
		if err != nil {
			return
		}
		select {
		case c <- q:
		case <-ctx.Done():
			return
		}
	}
}

// probe closes back when a replica serves streams again. Its pauses differ, so
// that a fleet does not come back all at once.
func (r *Relay) probe(ctx context.Context, back chan<- struct{}) {
	for pause.For(ctx, probeEvery/2+rand.N(probeEvery)) {
		if r.replicaServes(ctx) {
			close(back)
			return
		}
	}
}

// replicaServes reports whether a replica serves streams.
func (r *Relay) replicaServes(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, _, err := r.upstreams.open(ctx)
	return err == nil
}
