package relay

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"sluice.dev/sluice/platform/process/pause"
)

// requiredTypes are the types without which a state is of no use.
var requiredTypes = []string{resource.ClusterType, resource.ListenerType, resource.RouteType, resource.ExtensionConfigType}

// maxPending bounds the answers of one stream that Envoy has not answered.
const maxPending = 64

// writeDelay is how long the last-good state waits for more before it is written.
const writeDelay = 100 * time.Millisecond

// lastGood is what Envoy has accepted, and its file.
type lastGood struct {
	cfg       Config
	file      string
	staleness *staleness

	mu      sync.Mutex
	types   map[string]resources
	changed chan struct{} // has one entry when the file is behind
}

// loadLastGood reads the last-good state from its file.
func loadLastGood(c Config, a *staleness) *lastGood {
	b := &lastGood{cfg: c, file: filepath.Join(c.Dir, "config.state"), staleness: a, types: map[string]resources{}, changed: make(chan struct{}, 1)}
	raw, err := readSealed(b.file)
	if err == nil {
		err = b.decode(raw)
	}
	if err != nil {
		b.types = map[string]resources{}
		c.Log.Error("the saved configuration is of no use and is put aside", "file", b.file, "cause", err)
		putAside(b.file)
	}
	return b
}

// decode reads what encode wrote.
func (b *lastGood) decode(raw []byte) error {
	for part, rest := range frames(raw) {
		if part == nil {
			return fmt.Errorf("it is cut short %d bytes before its end", len(rest))
		}
		var r discovery.DeltaDiscoveryResponse
		if err := proto.Unmarshal(part, &r); err != nil {
			return err
		}
		named := resources{}
		for _, res := range r.GetResources() {
			named[res.GetName()] = res
		}
		b.types[r.GetTypeUrl()] = named
	}
	return nil
}

// encode writes one message for each type.
func (b *lastGood) encode() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []byte
	for _, typ := range slices.Sorted(maps.Keys(b.types)) {
		r := &discovery.DeltaDiscoveryResponse{TypeUrl: typ}
		for _, name := range slices.Sorted(maps.Keys(b.types[typ])) {
			r.Resources = append(r.Resources, b.types[typ][name])
		}
		part, err := proto.Marshal(r)
		if err != nil {
			return nil, err
		}
		out = appendFrame(out, part)
	}
	return out, nil
}

// saved returns the state, if it is whole.
func (b *lastGood) saved() (map[string]resources, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	copied := make(map[string]resources, len(b.types))
	for typ, named := range b.types {
		copied[typ] = maps.Clone(named)
	}
	for _, typ := range requiredTypes {
		if len(copied[typ]) == 0 {
			return nil, false
		}
	}
	return copied, true
}

// named returns one resource that Envoy holds, with its version; nil: it holds none of that name.
func (b *lastGood) named(typ, name string) (*anypb.Any, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.types[typ][name]
	return r.GetResource(), r.GetVersion()
}

// size is the number of resources.
func (b *lastGood) size() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, named := range b.types {
		n += len(named)
	}
	return n
}

// run writes the file whenever the last-good state has changed, until ctx ends, and then
// once more if it has.
func (b *lastGood) run(ctx context.Context) {
	for {
		select {
		case <-b.changed:
			pause.For(ctx, writeDelay)
		case <-ctx.Done():
			select {
			case <-b.changed:
			default:
				return
			}
		}
		if err := b.save(); err != nil {
			b.cfg.Log.Error("the configuration could not be saved", "file", b.file, "cause", err)
		}
	}
}

func (b *lastGood) save() error {
	raw, err := b.encode()
	if err != nil {
		return err
	}
	return writeSealed(b.file, raw)
}

// session follows one stream that a replica serves.
type session struct {
	lastGood *lastGood
	mu       sync.Mutex
	fresh    map[string]bool // types of which Envoy held nothing and asked for all, until the first acceptance
	pending  map[string]*discovery.DeltaDiscoveryResponse
	seen     map[string]bool // types that were asked for
}

func (b *lastGood) session() *session {
	return &session{lastGood: b, fresh: map[string]bool{}, pending: map[string]*discovery.DeltaDiscoveryResponse{}, seen: map[string]bool{}}
}

// response notes what a replica sends.
func (s *session) response(r *discovery.DeltaDiscoveryResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) >= maxPending {
		clear(s.pending)
	}
	s.pending[r.GetNonce()] = r
}

// request notes what Envoy asks for, and puts what it accepts into the last-good state.
func (s *session) request(q *discovery.DeltaDiscoveryRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	typ := q.GetTypeUrl()
	if !s.seen[typ] {
		s.seen[typ] = true
		s.fresh[typ] = len(q.GetResourceNamesSubscribe()) == 0 && len(q.GetInitialResourceVersions()) == 0
	}
	sent := s.pending[q.GetResponseNonce()]
	delete(s.pending, q.GetResponseNonce())
	if q.GetErrorDetail() != nil {
		sent = nil
	}
	if sent != nil || len(q.GetResourceNamesUnsubscribe()) > 0 {
		s.lastGood.apply(typ, sent, s.fresh[typ] && sent != nil, q.GetResourceNamesUnsubscribe())
	}
	if sent != nil {
		s.fresh[typ] = false
	}
}

// apply takes what Envoy accepted, in place of all that there was of the type if
// anew, and drops what it no longer wants.
func (b *lastGood) apply(typ string, sent *discovery.DeltaDiscoveryResponse, anew bool, dropped []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.types[typ] == nil || anew {
		b.types[typ] = resources{}
	}
	for _, r := range sent.GetResources() {
		b.types[typ][r.GetName()] = r
	}
	for _, name := range append(dropped, sent.GetRemovedResources()...) {
		delete(b.types[typ], name)
	}
	select {
	case b.changed <- struct{}{}:
	default:
	}
}
