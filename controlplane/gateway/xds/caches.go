package xds

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
)

// sharedTypes are the types whose resources are the same for all edges.
var sharedTypes = []string{resource.ClusterType, resource.EndpointType, resource.RouteType, resource.ExtensionConfigType, resource.SecretType}

// maxAddressPairs bounds how many different pairs of addresses edges may ask
// listeners for.
const maxAddressPairs = 4096

// collection is the resources of one type, by name.
type collection map[string]types.Resource

// versions maps names of resources to the hashes of their contents, which are
// their versions: equal on every replica.
type versions map[string]string

// table is a linear cache that knows what it holds, and the versions of that.
type table struct {
	cache   *cache.LinearCache
	content collection // by identity: what is in it is never altered
	held    versions
}

func newTable(typeURL string) *table {
	return &table{cache.NewLinearCache(typeURL), collection{}, versions{}}
}

// set makes the table hold exactly c. Edges hear of what differs only.
func (t *table) set(c collection) error {
	next, err := t.hash(c)
	if err != nil {
		return err
	}
	changed, gone := map[string]types.Resource{}, []string(nil)
	for name, v := range next {
		if t.held[name] != v {
			changed[name] = c[name]
		}
	}
	for name := range t.held {
		if _, ok := next[name]; !ok {
			gone = append(gone, name)
		}
	}
	t.content, t.held = c, next
	if len(changed)+len(gone) == 0 {
		return nil
	}
	return t.cache.UpdateResources(changed, gone)
}

// hash returns the versions of c. What the table holds already is not encoded again.
func (t *table) hash(c collection) (versions, error) {
	v := make(versions, len(c))
	for name, r := range c {
		if known, ok := t.content[name]; ok && known == r {
			v[name] = t.held[name]
			continue
		}
		b, err := cache.MarshalResource(r)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		v[name] = cache.HashResource(b)
	}
	return v, nil
}

// caches answers edges. Everything but listeners is one cache per type for the
// whole fleet; listeners are one cache for each pair of addresses.
type caches struct {
	mu        sync.Mutex
	shared    map[string]*table
	listeners map[resources.Addresses]*table
	current   *resources.Set   // what listeners of new address pairs are made of; nil: nothing yet
	names     *resources.Names // that have certificates; nil: none
}

func newCaches() *caches {
	c := &caches{shared: map[string]*table{}, listeners: map[resources.Addresses]*table{}}
	for _, t := range sharedTypes {
		c.shared[t] = newTable(t)
	}
	return c
}

// set makes type t hold exactly what is given.
func (c *caches) set(t string, resources collection) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shared[t].set(resources)
}

// setListeners makes every edge's listeners those of s.
func (c *caches) setListeners(s *resources.Set) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = s
	for a, t := range c.listeners {
		if err := c.fill(t, a); err != nil {
			return err
		}
	}
	return nil
}

// setNames says which hosts have certificates, for listeners from their next change on.
func (c *caches) setNames(n *resources.Names) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = n
}

func (c *caches) fill(t *table, a resources.Addresses) error {
	if a.TLS != "" {
		a.Names = c.names
	}
	listeners, err := c.current.Listeners(a)
	if err != nil {
		return err
	}
	return t.set(asCollection(listeners))
}

// wanted returns what an edge with addresses a should hold of type t.
func (c *caches) wanted(t string, a resources.Addresses) versions {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t == resource.ListenerType {
		if l := c.listeners[a]; l != nil {
			return maps.Clone(l.held)
		}
		return nil
	}
	if s := c.shared[t]; s != nil {
		return maps.Clone(s.held)
	}
	return nil
}

// CreateWatch refuses: edges use the delta protocol only.
func (c *caches) CreateWatch(*cache.Request, cache.Subscription, chan cache.Response) (func(), error) {
	return nil, status.Error(codes.Unimplemented, "only delta xDS is served")
}

// CreateDeltaWatch hands the watch to the cache of its type. A type that is not
// served is never answered, as its edge may be newer than this server.
func (c *caches) CreateDeltaWatch(r *cache.DeltaRequest, sub cache.Subscription, out chan cache.DeltaResponse) (func(), error) {
	if r.GetTypeUrl() != resource.ListenerType {
		if !slices.Contains(sharedTypes, r.GetTypeUrl()) {
			return func() {}, nil
		}
		return c.shared[r.GetTypeUrl()].cache.CreateDeltaWatch(r, sub, out)
	}
	t, err := c.listenersFor(addressesOf(r.GetNode()))
	if err != nil {
		return nil, err
	}
	return t.cache.CreateDeltaWatch(r, sub, out)
}

func (c *caches) listenersFor(a resources.Addresses) (*table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.listeners[a]; t != nil {
		return t, nil
	}
	if len(c.listeners) >= maxAddressPairs {
		return nil, status.Error(codes.ResourceExhausted, "too many different pairs of addresses")
	}
	t := newTable(resource.ListenerType)
	if err := c.fill(t, a); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the node's addresses: %v", err)
	}
	c.listeners[a] = t
	return t, nil
}

// addressesOf reads where an edge listens from its node's metadata.
func addressesOf(n *core.Node) resources.Addresses {
	f := n.GetMetadata().GetFields()
	return resources.Addresses{Gateway: f["gateway_addr"].GetStringValue(), Runtime: f["runtime_addr"].GetStringValue(),
		TLS: f["tls_secret"].GetStringValue(), HTTP3: f["http3"].GetBoolValue(), Plain: f["plain_addr"].GetStringValue()}
}

// asCollection gives a map of one kind of message the type that caches take.
func asCollection[M types.Resource](m map[string]M) collection {
	c := make(collection, len(m))
	for name, r := range m {
		c[name] = r
	}
	return c
}

// union returns what is in a or b, b's where both have a name.
func union[M any](a, b map[string]M) map[string]M {
	u := make(map[string]M, len(a)+len(b))
	maps.Copy(u, a)
	maps.Copy(u, b)
	return u
}
