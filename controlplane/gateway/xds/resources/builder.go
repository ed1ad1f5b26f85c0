package resources

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/policy"
)

// Builder builds the sets of documents that follow each other. It remembers the
// last one: what a product or a route became is taken over as long as it says the
// same, and lists of routes are encoded anew only where one of them has changed. The
// result has the same contents as that of Build.
type Builder struct {
	opts Options
	ends map[string][]branched // see catchAll

	mu   sync.Mutex
	last *Set
}

// NewBuilder returns a builder that remembers nothing yet. What o leads to must
// not be altered afterwards.
func NewBuilder(o Options) *Builder {
	return &Builder{opts: o, ends: o.catchAll(), last: &Set{}}
}

// Build compiles document d as the function Build does.
func (b *Builder) Build(d config.Document, p *policy.Policy) (*Set, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.begin(d, p)
	for i := range p.Routes {
		name := p.Routes[i].Name
		if p.Routes[i].Of != "" {
			name = versionOf(name, p.Routes[i].Product)
		}
		s.keys[name] = p.Routes[i].Key()
	}
	for _, r := range d.Routes {
		if r.Retries != nil {
			for _, product := range append(r.Versions(), r.Product) {
				s.retried[product] = true
			}
		}
	}
	unchanged := make(map[string]bool, len(d.Products))
	for _, pr := range d.Products {
		s.products[pr.Name] = pr
		if was, ok := b.last.products[pr.Name]; ok && reflect.DeepEqual(was, pr) && b.last.retried[pr.Name] == s.retried[pr.Name] {
			unchanged[pr.Name] = true
			s.takeOver(b.last, pr.Name)
		} else if err := s.addProduct(pr); err != nil {
			return nil, err
		}
	}
	s.addClientAuthorities()
	if err := s.addTraces(); err != nil {
		return nil, err
	}
	before := b.last.made
	if b.last.Policy != nil && !slices.Equal(b.last.Policy.KeyHeaders, p.KeyHeaders) { // every route takes them away
		before = nil
	}
	if err := s.makeRoutes(before, unchanged); err != nil {
		return nil, err
	}
	for _, name := range []string{config.Gateway, config.Runtime} {
		s.Routes[name] = s.routeTable(name)
	}
	s.addTables(b.last)
	if err := s.addCache(b.last); err != nil {
		return nil, err
	}
	s.lists.was = nil
	b.last = s
	return s, nil
}

// begin returns a set that has what does not depend on products and routes.
func (b *Builder) begin(d config.Document, p *policy.Policy) *Set {
	s := &Set{
		Policy: p, doc: d, opts: b.opts, settings: settingsOf(d),
		Filters:   maps.Clone(b.last.Filters),
		Routes:    map[string]*route.RouteConfiguration{},
		Clusters:  make(map[string]*cluster.Cluster, len(d.Products)),
		Endpoints: make(map[string]*endpoint.ClusterLoadAssignment, len(d.Products)),
		Secrets:   map[string]*tlsv3.Secret{},
		products:  make(map[string]config.Product, len(d.Products)),
		keys:      make(map[string]string, len(p.Routes)),
		made:      make(map[string]*made, len(d.Routes)),
		retried:   map[string]bool{},
		lists: routeLists{was: b.last.lists.now, now: map[string]encodedList{}, shares: map[*route.Route]config.Share{},
			credentials: append([]string{"authorization"}, p.KeyHeaders...)},
		ends:      b.ends,
		listeners: b.last.listeners,
	}
	if s.Filters == nil {
		s.Filters = map[string]*core.TypedExtensionConfig{ChatCapsFilter: chatCapsFilter(b.opts.DocsBase)}
	}
	if p != b.last.Policy {
		s.Filters[EdgeFilter] = EdgeFilterConfig(p)
	}
	if s.listeners == nil || s.settings != b.last.settings {
		s.listeners = &listeners{made: map[Addresses]map[string]*listener.Listener{}}
	}
	return s
}

// takeOver has a product's cluster, addresses and secrets from an earlier set.
func (s *Set) takeOver(from *Set, product string) {
	s.Clusters[product] = from.Clusters[product]
	if e, ok := from.Endpoints[product]; ok {
		s.Endpoints[product] = e
	}
	for _, name := range []string{authoritiesOf(product), certificateOf(product)} {
		if secret, ok := from.Secrets[name]; ok {
			s.Secrets[name] = secret
		}
	}
}

// made is what became of one route.
type made struct {
	from    config.Route
	key     string
	pattern config.Pattern
	routes  []branched // in the order in which they are tried
	table   []byte     // that its requests are held against; nil: they are not
}

// makeRoutes compiles all routes, but for those which say what they said before
// and whose products do.
func (s *Set) makeRoutes(before map[string]*made, unchanged map[string]bool) error {
	for _, r := range s.doc.Routes {
		was, key := before[r.Name], s.keys[r.Name]
		if was != nil && was.key == key && !slices.ContainsFunc(r.Products(), func(p string) bool { return !unchanged[p] }) && was.from.Equal(r) {
			s.made[r.Name] = was
			continue
		}
		m, err := s.makeRoute(r)
		if err != nil {
			return err
		}
		s.made[r.Name] = m
	}
	return nil
}

// settings are what listeners are made of, of a document.
type settings struct {
	accessLog, requestLog string
	proxies, anonymous    uint32
	clients               bool // are asked for certificates
	compress, names       bool // filters that some route asks for
	shadows               bool // something is not enforced
	caches                bool // answers are kept
	grpc                  bool // some product speaks it
	answersALPN           bool // of authorities that check who has a name
	docs                  bool // are served
}

func settingsOf(d config.Document) settings {
	s := settings{accessLog: d.AccessLog, requestLog: d.RequestLog, proxies: d.TrustedProxies, anonymous: d.AnonymousLimit(),
		clients: d.ClientCertificates != nil, shadows: d.Shadows(), caches: d.Caches(), grpc: d.HasGRPC(), answersALPN: d.AnswersALPN(), docs: servesDocs(d)}
	s.compress, s.names = settingsOfRoutes(d)
	return s
}

// listeners are those that have been made, by addresses of edges.
type listeners struct {
	mu   sync.Mutex
	made map[Addresses]map[string]*listener.Listener
}

// at returns the listeners at a, which are made if they are not there.
func (l *listeners) at(a Addresses, make func(Addresses) (map[string]*listener.Listener, error)) (map[string]*listener.Listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.made[a]; ok {
		return known, nil
	}
	made, err := make(a)
	if err == nil {
		l.made[a] = made
	}
	return made, err
}
