package xds

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
)

// Limits of what is remembered about edges.
const (
	maxReasonBytes  = 2000
	maxPending      = 64        // responses of one type without an answer
	maxKnownEdges   = 10000     // disconnected ones beyond that are forgotten
	rememberedAfter = time.Hour // how long a disconnected edge is remembered
)

// fleet follows what each edge has been sent, has accepted and has refused.
type fleet struct {
	mu      sync.Mutex
	edges   map[string]*edge
	streams map[int64]*edge
	changed chan struct{} // closed and replaced when anything changes
	now     func() time.Time
	log     *slog.Logger
	metrics metrics
}

type edge struct {
	id        string
	addresses resources.Addresses
	build     string
	stream    int64 // 0: not connected
	since     time.Time
	lastSeen  time.Time
	types     map[string]*subscription
	held      int64 // newest version that it held whole
}

// subscription is what one edge knows of one type.
type subscription struct {
	wildcard bool
	names    map[string]bool
	held     versions            // accepted
	pending  map[string]response // sent, not answered, by nonce
	refusal  *Refusal            // the last one that stands; nil: it accepts
	version  int64               // newest version of which it held all
}

// response is what one message changed.
type response struct {
	updated versions
	removed []string
	at      time.Time // when it was sent
}

func newFleet(now func() time.Time, log *slog.Logger, m metrics) *fleet {
	return &fleet{edges: map[string]*edge{}, streams: map[int64]*edge{}, changed: make(chan struct{}), now: now, log: log, metrics: m}
}

// wait returns a channel that is closed at the next change.
func (f *fleet) wait() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// announceAll tells of a change that concerns all edges.
func (f *fleet) announceAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.announce()
}

func (f *fleet) announce() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// request notes what an edge asks for, accepts or refuses.
func (f *fleet) request(stream int64, r *discovery.DeltaDiscoveryRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.streams[stream]
	if e == nil {
		e = f.connect(stream, r.GetNode())
	}
	e.lastSeen = f.now()
	s := e.types[r.GetTypeUrl()]
	if s == nil {
		s = newSubscription(r)
		e.types[r.GetTypeUrl()] = s
	}
	s.subscribe(r.GetResourceNamesSubscribe(), r.GetResourceNamesUnsubscribe())
	f.answer(e, s, r)
	f.announce()
}

// connect notes a new stream. An edge has one stream; a second one of the same
// name takes its place.
func (f *fleet) connect(stream int64, n *core.Node) *edge {
	f.forget()
	now := f.now()
	e := &edge{id: n.GetId(), addresses: addressesOf(n), build: buildOf(n), stream: stream, since: now, types: map[string]*subscription{}}
	f.edges[e.id], f.streams[stream] = e, e
	f.log.Info("edge connected", "edge", e.id, "build", e.build)
	return e
}

// answer applies the acceptance or refusal in r.
func (f *fleet) answer(e *edge, s *subscription, r *discovery.DeltaDiscoveryRequest) {
	if r.GetResponseNonce() == "" {
		return
	}
	sent, ok := s.pending[r.GetResponseNonce()]
	delete(s.pending, r.GetResponseNonce())
	if ok {
		f.metrics.answered(r.GetTypeUrl(), f.now().Sub(sent.at), r.GetErrorDetail() != nil)
	}
	if d := r.GetErrorDetail(); d != nil {
		reason := d.GetMessage()
		if r.GetTypeUrl() == resource.SecretType { // Envoy names the file only
			reason = strings.Join(slices.Sorted(maps.Keys(sent.updated)), ", ") + ": " + reason
		}
		if len(reason) > maxReasonBytes {
			reason = reason[:maxReasonBytes]
		}
		tried := sent.updated
		if s.refusal != nil {
			tried = union(s.refusal.tried, tried)
		}
		s.refusal = &Refusal{Reason: reason, Time: f.now(), tried: tried}
		f.log.Error("edge refuses a configuration", "edge", e.id, "type", shortType(r.GetTypeUrl()), "reason", reason)
		return
	}
	if ok {
		s.apply(sent)
		s.settle(sent)
	}
	f.log.Debug("edge accepts", "edge", e.id, "type", shortType(r.GetTypeUrl()), "resources", len(s.held))
}

// respond notes what is about to be sent to an edge.
func (f *fleet) respond(stream int64, r *discovery.DeltaDiscoveryResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.streams[stream]
	if e == nil || e.types[r.GetTypeUrl()] == nil {
		return
	}
	s := e.types[r.GetTypeUrl()]
	if len(s.pending) >= maxPending {
		clear(s.pending)
	}
	sent := response{updated: versions{}, removed: r.GetRemovedResources(), at: f.now()}
	for _, res := range r.GetResources() {
		sent.updated[res.GetName()] = res.GetVersion()
	}
	s.pending[r.GetNonce()] = sent
}

// close notes that a stream has ended.
func (f *fleet) close(stream int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.streams[stream]
	if e == nil {
		return
	}
	delete(f.streams, stream)
	e.stream, e.since, e.lastSeen = 0, f.now(), f.now()
	f.log.Info("edge disconnected", "edge", e.id)
	f.announce()
}

// forget drops edges that have been gone for long, or all that are gone when
// there are too many.
func (f *fleet) forget() {
	for id, e := range f.edges {
		if e.stream == 0 && (len(f.edges) >= maxKnownEdges || f.now().Sub(e.lastSeen) > rememberedAfter) {
			delete(f.edges, id)
		}
	}
}

func newSubscription(r *discovery.DeltaDiscoveryRequest) *subscription {
	s := &subscription{names: map[string]bool{}, held: versions{}, pending: map[string]response{}}
	s.wildcard = len(r.GetResourceNamesSubscribe()) == 0
	for name, v := range r.GetInitialResourceVersions() {
		s.held[name] = v
	}
	return s
}

func (s *subscription) subscribe(names, unsubscribe []string) {
	for _, n := range names {
		if n == "*" {
			s.wildcard = true
			continue
		}
		s.names[n] = true
	}
	for _, n := range unsubscribe {
		if n == "*" {
			s.wildcard = false
		}
		delete(s.names, n)
		delete(s.held, n)
	}
}

func (s *subscription) apply(r response) {
	for name, v := range r.updated {
		s.held[name] = v
	}
	for _, name := range r.removed {
		delete(s.held, name)
	}
}

// settle forgets, of what the edge refused, what it has now accepted anew or
// given up. A refusal stands until all of it is settled: accepting something
// else, as the next step of a publication, does not take it back.
func (s *subscription) settle(r response) {
	if s.refusal == nil {
		return
	}
	for name := range r.updated {
		delete(s.refusal.tried, name)
	}
	for _, name := range r.removed {
		delete(s.refusal.tried, name)
	}
	if len(s.refusal.tried) == 0 {
		s.refusal = nil
	}
}

// has reports whether the edge holds what is wanted, of what it asked for.
func (s *subscription) has(want versions) bool {
	for name, v := range want {
		if (s.wildcard || s.names[name]) && s.held[name] != v {
			return false
		}
	}
	for name := range s.held {
		if _, ok := want[name]; !ok {
			return false
		}
	}
	return true
}

// refused reports whether the edge has said no to what is wanted.
func (s *subscription) refused(want versions) bool {
	if s.refusal == nil {
		return false
	}
	for name, v := range s.refusal.tried {
		if want[name] == v {
			return true
		}
	}
	return false
}
