package xds

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// EdgeStatus is what one edge wants, holds and refuses.
type EdgeStatus struct {
	ID          string       `json:"id"`
	Connected   bool         `json:"connected"` // to this replica
	Since       time.Time    `json:"since"`     // when it connected, or was lost
	LastSeen    time.Time    `json:"last_seen"`
	GatewayAddr string       `json:"gateway_addr"`
	RuntimeAddr string       `json:"runtime_addr"`
	Build       string       `json:"build"`
	Published   int64        `json:"version_published"`  // every step of it has been answered, or was waited for in vain
	Wanted      int64        `json:"version_wanted"`     // what this replica serves; more than it has published while it publishes
	Held        int64        `json:"version_held"`       // newest that it held whole; 0: none since it connected
	Current     bool         `json:"current"`            // holds all of the published version
	Refusals    []string     `json:"refusals,omitempty"` // type and reason each
	Types       []TypeStatus `json:"types"`
}

// TypeStatus is EdgeStatus for one type of resource. Wanted and Held are
// digests of the versions of its resources: equal when the edge is current.
type TypeStatus struct {
	Type      string   `json:"type"`         // listeners, routes, clusters, endpoints, filters or secrets
	Version   int64    `json:"version_held"` // newest version of which it held all
	Wanted    string   `json:"wanted"`
	Held      string   `json:"held"`
	Resources int      `json:"resources"` // held
	Current   bool     `json:"current"`
	Refusal   *Refusal `json:"refusal,omitempty"`
}

// Refusal says why an edge did not take what it was last sent (NACK).
type Refusal struct {
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`

	tried versions
}

// Changed returns a channel that is closed at the next change of what Edges
// returns. Take it before reading.
func (s *Server) Changed() <-chan struct{} { return s.fleet.wait() }

// Edges returns the status of every edge that is or lately was connected to
// this replica, in the order of their names.
func (s *Server) Edges() []EdgeStatus {
	published, wanted := s.versions()
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	list := make([]EdgeStatus, 0, len(s.fleet.edges))
	for _, e := range s.fleet.edges {
		list = append(list, s.statusOf(e, published, wanted))
	}
	slices.SortFunc(list, func(a, b EdgeStatus) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// versions returns the version that was published last, and the one that is
// being published, else the same.
func (s *Server) versions() (published, wanted int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, max(s.version, s.wanted)
}

// essential are the types without which an edge does not hold a version.
var essential = []string{resource.ClusterType, resource.ListenerType, resource.RouteType, resource.ExtensionConfigType}

func (s *Server) statusOf(e *edge, published, wanted int64) EdgeStatus {
	st := EdgeStatus{
		ID: e.id, Connected: e.stream != 0, Since: e.since, LastSeen: e.lastSeen, Build: e.build,
		GatewayAddr: e.addresses.Gateway, RuntimeAddr: e.addresses.Runtime, Published: published, Wanted: wanted, Current: true,
	}
	for _, url := range essential {
		st.Current = st.Current && e.types[url] != nil
	}
	for _, url := range slices.Sorted(maps.Keys(e.types)) {
		t := s.typeStatus(url, e, published)
		st.Types = append(st.Types, t)
		st.Current = st.Current && t.Current
		if t.Refusal != nil {
			st.Refusals = append(st.Refusals, t.Type+": "+t.Refusal.Reason)
		}
	}
	if st.Current {
		e.held = published
	}
	st.Held = e.held
	return st
}

// typeStatus also notes that e holds the published version of a type, if it does.
func (s *Server) typeStatus(url string, e *edge, published int64) TypeStatus {
	sub, want := e.types[url], s.caches.wanted(url, e.addresses)
	t := TypeStatus{
		Type: shortType(url), Wanted: digest(sub.relevant(want)), Held: digest(sub.held),
		Resources: len(sub.held), Current: sub.has(want), Refusal: sub.refusal,
	}
	if t.Current {
		sub.version = published
	}
	t.Version = sub.version
	return t
}

// relevant returns the part of want that the edge asked for.
func (s *subscription) relevant(want versions) versions {
	if s.wildcard {
		return want
	}
	part := versions{}
	for name, v := range want {
		if s.names[name] {
			part[name] = v
		}
	}
	return part
}

// digest is a short text that is equal for equal versions.
func digest(v versions) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(v)) {
		fmt.Fprintf(h, "%s=%s\n", name, v[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

var typeNames = map[string]string{
	resource.ListenerType: "listeners", resource.RouteType: "routes", resource.ClusterType: "clusters",
	resource.EndpointType: "endpoints", resource.ExtensionConfigType: "filters", resource.SecretType: "secrets",
}

func shortType(url string) string {
	if name, ok := typeNames[url]; ok {
		return name
	}
	return url[strings.LastIndexByte(url, '/')+1:]
}

func buildOf(n *core.Node) string {
	v := n.GetUserAgentBuildVersion().GetVersion()
	if v == nil {
		return n.GetUserAgentName()
	}
	return fmt.Sprintf("%s %d.%d.%d", n.GetUserAgentName(), v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
}
