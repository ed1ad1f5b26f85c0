package resources

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sluice.dev/sluice/controlplane/gateway/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// everything is a document that uses each field.
func everything() config.Document {
	none, bearer := []string{"none"}, []string{"key"}
	two := uint32(0)
	return config.Document{
		AccessLog: "all", AnonymousPerMinute: 30,
		Classes: []config.Class{{Name: "default", PerMinute: 60}, {Name: "bulk", PerMinute: 10, Burst: 5}},
		Plans:   []config.Plan{{Name: "free", Features: []string{"beta"}}},
		Scopes:  []string{"streams:read"},
		Products: []config.Product{
			{Name: "media", Upstreams: []config.Upstream{{Address: "${media}", Weight: 3}, {Address: "10.0.0.2:80"}},
				ConnectTimeout: "250ms", IdleTimeout: "5s", MaxConnections: 10, MaxRequests: 20, Retries: &two, HealthPath: "/healthz"},
			{Name: "chat", Upstreams: []config.Upstream{{Address: "chat.internal:443"}}},
			{Name: "guarded", Upstreams: []config.Upstream{{Address: "10.0.0.3:443"}}, Host: "guarded.internal", HTTP2: true, MaxPending: 5,
				RetryOn: []uint32{503}, TryTimeout: "2s", Health: &config.Health{Path: "/up", Host: "h", Interval: "1s", Timeout: "100ms", Healthy: 2, Unhealthy: 4},
				Outliers: config.Outliers{Failures: 2, ServerErrors: 9, Interval: "1s", Ejection: "2m", MaxPercent: 100},
				TLS:      &config.TLS{ServerName: "guarded.internal", CAFile: "/etc/ca.pem", CertFile: "/etc/edge.pem", KeyFile: "/etc/edge.key"},
				CORS:     &config.CORS{Origins: []string{"https://app.example", "https://*.app.example"}, Credentials: true, MaxAge: "1h"}},
			{Name: "open", Upstreams: []config.Upstream{{Address: "10.0.0.4:443"}}, Outliers: config.Outliers{Off: true}, TLS: &config.TLS{ServerName: "open.example"}},
		},
		Routes: []config.Route{
			{Name: "below", Path: "/v1/streams/*", Product: "media", Auth: bearer, Class: "bulk"},
			{Name: "get", Methods: []string{"GET", "HEAD"}, Path: "/v1/streams/{id}", Product: "media", Auth: bearer, Scope: "streams:read", Timeout: "3s"},
			{Name: "list", Methods: []string{"GET"}, Path: "/v1/streams", Product: "chat", Auth: bearer, BodyLimit: 1024},
			{Name: "hello", Path: "/hello", Respond: &config.Respond{Status: 200, Body: "hi", ContentType: "text/plain"}, Auth: none},
			{Name: "gone", Path: "/gone", Respond: &config.Respond{Status: 410}, Auth: none},
			{Name: "guarded", Methods: []string{"GET", "PUT"}, Path: "/v1/guarded/{id}", Product: "guarded", Auth: bearer, Feature: "beta", BodyLimit: 99,
				Rewrite: &config.Rewrite{Path: "/x/{id}/y"}},
			{Name: "guarded.beta", Hosts: []string{"beta.example", "*.beta.example"}, Methods: []string{"GET"}, Path: "/v1/guarded/{id}", Product: "guarded", Auth: bearer,
				CORS: &config.CORS{}, Rewrite: &config.Rewrite{Prefix: "/beta", Host: "beta.internal"},
				Headers: []config.HeaderMatch{{Name: "x-version", Value: "2"}, {Name: "x-a", Prefix: "p"}, {Name: "x-b", Regex: "[0-9]+"}, {Name: "x-c", Absent: true}, {Name: "x-d"}}},
			{Name: "chat", Listener: config.Runtime, Methods: []string{"POST"}, Path: "/v1/chat", Product: "chat", Auth: bearer,
				ForwardCredentials: true, Streaming: true, Timeout: "90s", BodyLimit: 1 << 20, ChatCaps: true},
		},
	}
}

func TestGoldens(t *testing.T) {
	t.Parallel()
	s := build(t, everything(), Options{Addresses: map[string][]string{"media": {"10.0.0.1:80", "10.0.1.1:80"}}, DocsBase: "https://api.example"})
	listeners, err := s.Listeners(Addresses{Gateway: "0.0.0.0:8080", Runtime: "[::1]:8090"})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "listeners", listeners)
	golden(t, "routes", s.Routes)
	golden(t, "clusters", s.Clusters)
	golden(t, "endpoints", s.Endpoints)
	golden(t, "filters", s.Filters)
	golden(t, "secrets", s.Secrets)
}

// golden compares resources with a file. protojson varies its spaces on
// purpose, so the text is compacted and indented anew.
func golden[M proto.Message](t *testing.T, name string, resources map[string]M) {
	t.Helper()
	all := map[string]json.RawMessage{}
	for k, m := range resources {
		js, err := protojson.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		all[k] = js
	}
	got, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	file := filepath.Join("testdata", name+".golden.json")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run go test -update", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from its golden file; see what go test -update changes in it", name)
	}
}

// go-control-plane's own check: what listeners and clusters refer to is there.
func TestSetIsConsistent(t *testing.T) {
	t.Parallel()
	s := build(t, defaults(t), Options{Addresses: addresses})
	listeners, err := s.Listeners(Addresses{Gateway: "127.0.0.1:1", Runtime: "127.0.0.1:2"})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := cache.NewSnapshot("1", map[resource.Type][]types.Resource{
		resource.ListenerType: list(listeners), resource.RouteType: list(s.Routes),
		resource.ClusterType: list(s.Clusters), resource.EndpointType: list(s.Endpoints), resource.ExtensionConfigType: list(s.Filters),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Consistent(); err != nil {
		t.Error(err)
	}
}

// What that check does not look at.
func TestRoutesReferToClustersAndPoliciesThatExist(t *testing.T) {
	t.Parallel()
	s := build(t, defaults(t), Options{Addresses: addresses})
	known := map[string]bool{}
	for _, r := range s.Policy.Routes {
		known[r.Key()] = true
	}
	for _, rc := range s.Routes {
		for _, r := range flat(t, rc.VirtualHosts[0]) {
			if !known[r.Name] {
				t.Errorf("%s has no policy", r.Name)
			}
			if c := r.GetRoute().GetCluster(); c != "" && s.Clusters[c] == nil {
				t.Errorf("%s goes to %s, which is not there", r.Name, c)
			}
		}
	}
}

func TestTheSameInputGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	var last []byte
	for range 10 {
		s := build(t, defaults(t), Options{Addresses: addresses})
		listeners, err := s.Listeners(Addresses{Gateway: "127.0.0.1:1", Runtime: "127.0.0.1:2"})
		if err != nil {
			t.Fatal(err)
		}
		var b []byte
		for _, r := range slices.Concat(list(listeners), list(s.Routes), list(s.Clusters), list(s.Endpoints), list(s.Filters)) {
			m, err := cache.MarshalResource(r)
			if err != nil {
				t.Fatal(err)
			}
			b = append(b, m...)
		}
		if last != nil && !bytes.Equal(b, last) {
			t.Fatal("it differs")
		}
		last = b
	}
}

// list returns the resources in the order of their names.
func list[M types.Resource](m map[string]M) []types.Resource {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []types.Resource
	for _, name := range names {
		out = append(out, m[name])
	}
	return out
}
