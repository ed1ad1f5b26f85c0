// Package resources turns a configuration into the resources that Envoy is
// served by xDS. It is pure: the same input gives the same bytes, on every
// replica of the control plane.
package resources

import (
	"fmt"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/httpcache"
	"sluice.dev/sluice/filters/policy"
)

// Options is what the control plane knows besides the document.
type Options struct {
	// Addresses gives, for each ${name} of the document's upstreams, the host:port
	// of every process that serves it.
	Addresses map[string][]string
	// DocsBase is the public address of the gateway without a trailing slash,
	// for links in errors; empty: relative links.
	DocsBase string
	// Own are the host:port under which edges are reached: a product there would
	// be a loop.
	Own []string
	// Upstreams says which addresses the document may name, besides ${names};
	// nil: all.
	Upstreams *Upstreams
	// Traces says where edges report traces to; nil: they make none.
	Traces *Traces
}

// Set is everything that edges are served, by name of resource. All edges get
// the same, but for the listeners: those differ by the edge's addresses. Nobody may
// alter what is in a Set: sets that follow each other share what has not changed.
type Set struct {
	Policy    *policy.Policy
	Filters   map[string]*core.TypedExtensionConfig
	Routes    map[string]*route.RouteConfiguration
	Clusters  map[string]*cluster.Cluster
	Endpoints map[string]*endpoint.ClusterLoadAssignment
	// Secrets name files of the edges' machines; what is in those no replica knows.
	Secrets map[string]*tlsv3.Secret
	// Tables are those that requests of routes are held against, by the routes'
	// keys. The filter ValidateFilter has them.
	Tables map[string][]byte

	// CacheRules are what is kept of routes' answers, by the routes' keys. The filter
	// CacheFilter has them; there is none without any.
	CacheRules map[string]httpcache.Rule

	doc       config.Document
	opts      Options
	settings  settings
	products  map[string]config.Product
	keys      map[string]string // of routes' policies, by name
	made      map[string]*made  // of routes, by name
	retried   map[string]bool   // products of routes with retries of their own
	ends      map[string][]branched
	lists     routeLists
	listeners *listeners
}

// Addresses are where and how one edge listens.
type Addresses struct {
	// Gateway and Runtime are host:port; empty: not there.
	Gateway, Runtime string
	// TLS is the file of the edge that holds the secret ListenerSecret; empty:
	// without TLS.
	TLS string
	// HTTP3 adds HTTP/3 on the same ports of UDP. It needs TLS.
	HTTP3 bool
	// Plain is the host:port of the listener Plain; empty: not there.
	Plain string
	// Names are the hosts with certificates of their own, where there is TLS; nil: none.
	Names *Names
}

// Build compiles document d, which must be valid, with the policy p made of it.
// Addresses that CheckUpstreams has something against are left out: one bad
// product must not keep the others from edges.
func Build(d config.Document, p *policy.Policy, o Options) (*Set, error) {
	return NewBuilder(o).Build(d, p)
}

// Listeners returns the listeners of an edge with addresses a, by name. An
// address that is empty leaves its listener out. Sets of one Builder share them as
// long as nothing changes that they are made of; nobody may alter them.
func (s *Set) Listeners(a Addresses) (map[string]*listener.Listener, error) {
	return s.listeners.at(a, s.newListeners)
}

func (s *Set) newListeners(a Addresses) (map[string]*listener.Listener, error) {
	out := map[string]*listener.Listener{}
	if a.Plain != "" {
		l, err := s.plain(a.Plain)
		if err != nil {
			return nil, fmt.Errorf("listener %s: %w", Plain, err)
		}
		out[l.Name] = l
	}
	if a.TLS != "" && a.Names != nil && len(a.Names.Exact) > 0 {
		out[Prefetch] = prefetch(a.Names)
	}
	for name, addr := range map[string]string{config.Gateway: a.Gateway, config.Runtime: a.Runtime} {
		if addr == "" {
			continue
		}
		ls, err := s.listenersAt(name, addr, a)
		if err != nil {
			return nil, fmt.Errorf("listener %s: %w", name, err)
		}
		for _, l := range ls {
			out[l.Name] = l
		}
	}
	return out, nil
}

// listenersAt returns the listener at addr, and the one for HTTP/3 if a has it.
func (s *Set) listenersAt(name, addr string, a Addresses) ([]*listener.Listener, error) {
	if a.TLS == "" || !a.HTTP3 {
		l, err := s.listener(name, addr)
		if err == nil && a.TLS != "" {
			err = s.overTLS(l, name, addr, a)
		}
		return []*listener.Listener{l}, err
	}
	l, err := s.listener(name, addr, announced(addr))
	if err != nil {
		return nil, err
	}
	q, err := s.overQUIC(l, name, a)
	if err == nil {
		err = s.overTLS(l, name, addr, a)
	}
	return []*listener.Listener{l, q}, err
}
