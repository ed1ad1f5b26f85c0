package rehearsal

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tree "github.com/cncf/xds/go/xds/type/matcher/v3"
	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
	"sluice.dev/sluice/filters/recording"
)

func packed(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// telling has every route below on answer with its name.
func telling(t *testing.T, on *tree.Matcher_OnMatch) {
	t.Helper()
	if on == nil {
		return
	}
	if m := on.GetMatcher(); m != nil {
		tellingAll(t, m)
		return
	}
	list := &route.RouteList{}
	if err := on.GetAction().TypedConfig.UnmarshalTo(list); err != nil {
		t.Fatal(err)
	}
	for _, r := range list.Routes {
		name, _, _ := strings.Cut(r.Name, "@")
		body := &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: name}}
		r.Action = &route.Route_DirectResponse{DirectResponse: &route.DirectResponseAction{Status: 200, Body: body}}
		r.TypedPerFilterConfig, r.RequestHeadersToAdd, r.RequestHeadersToRemove, r.ResponseHeadersToAdd, r.RequestBodyBufferLimit = nil, nil, nil, nil, nil
	}
	on.GetAction().TypedConfig = packed(t, list)
}

func tellingAll(t *testing.T, m *tree.Matcher) {
	t.Helper()
	telling(t, m.OnNoMatch)
	for _, f := range m.GetMatcherList().GetMatchers() {
		telling(t, f.OnMatch)
	}
	for _, on := range m.GetMatcherTree().GetPrefixMatchMap().GetMap() {
		telling(t, on)
	}
}

// envoyOf runs an Envoy with the routes that edges have of d, each of which answers with
// its name, and returns the address of its gateway.
func envoyOf(t *testing.T, d config.Document) string {
	t.Helper()
	p, err := d.Policy(1, "http://gw", config.ProvisionalNumbers(d))
	if err != nil {
		t.Fatal(err)
	}
	set, err := resources.Build(d, p, resources.Options{DocsBase: "http://gw"})
	if err != nil {
		t.Fatal(err)
	}
	table := proto.CloneOf(set.Routes[config.Gateway])
	tellingAll(t, table.VirtualHosts[0].Matcher)
	table.VirtualHosts[0].RetryPolicy = nil
	any0 := &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{Address: "127.0.0.1", PortSpecifier: &core.SocketAddress_PortValue{}}}}
	manager := &hcm.HttpConnectionManager{StatPrefix: "gateway", RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: table},
		NormalizePath: wrapperspb.Bool(true), MergeSlashes: true, PathWithEscapedSlashesAction: hcm.HttpConnectionManager_REJECT_REQUEST,
		HttpFilters: []*hcm.HttpFilter{{Name: "envoy.filters.http.router", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: packed(t, &router.Router{})}}}}
	b := &bootstrap.Bootstrap{Admin: &bootstrap.Admin{Address: any0}, StaticResources: &bootstrap.Bootstrap_StaticResources{Listeners: []*listener.Listener{{Name: "gateway", Address: any0,
		FilterChains: []*listener.FilterChain{{Filters: []*listener.Filter{{Name: "http", ConfigType: &listener.Filter_TypedConfig{TypedConfig: packed(t, manager)}}}}}}}}}
	raw, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "envoy.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return started(t, file)
}

// started runs an Envoy and waits until it listens.
func started(t *testing.T, file string) string {
	t.Helper()
	admin := filepath.Join(filepath.Dir(file), "admin")
	cmd := exec.Command(os.Getenv("SLUICE_ENVOY"), "--config-path", file, "--admin-address-path", admin, "--concurrency", "1", "--log-level", "error", "--disable-hot-restart")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run `make test`, which sets SLUICE_ENVOY", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 3000 { // Envoy gives no signal of its own
		<-tick.C
		at, err := os.ReadFile(admin)
		if err != nil || len(at) == 0 {
			continue
		}
		res, err := http.Get("http://" + string(at) + "/listeners")
		if err != nil {
			continue
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if _, addr, ok := strings.Cut(strings.TrimSpace(string(text)), "gateway::"); err == nil && ok {
			return addr
		}
	}
	t.Fatal("Envoy has not opened its listener")
	return ""
}

var (
	someSegments = []string{"a", "b", "v1", "c.d", "{x}", "{y}"}
	someHeaders  = []config.HeaderMatch{{Name: "X-One", Value: "1"}, {Name: "X-One", Value: "2"}, {Name: "X-One", Absent: true}, {Name: "x-two"}, {Name: "X-Two", Prefix: "p"}, {Name: "X-Two", Regex: "p[0-9]+"}}
	someHosts    = []string{"a.example", "b.example", "*.example", "*.b.example"}
)

// randomDocument has routes that compete for paths.
func randomDocument(rng *rand.Rand, headers bool) config.Document {
	d := config.Document{Classes: []config.Class{{Name: "default", PerMinute: 60}}, Products: []config.Product{{Name: "p", Upstreams: []config.Upstream{{Address: "127.0.0.1:1"}}}}}
	seen := map[string]bool{}
	for n := range 8 + rng.IntN(30) {
		r := config.Route{Name: fmt.Sprint("r", n), Product: "p", Auth: []string{"none"}}
		for range 1 + rng.IntN(4) {
			r.Path += "/" + someSegments[rng.IntN(len(someSegments))]
		}
		switch rng.IntN(5) {
		case 0:
			r.Path += "/*"
		case 1:
			r.Path += "/"
		case 2:
			r.Path = "/*"
		}
		for _, m := range []string{"GET", "POST", "HEAD", "OPTIONS"} {
			if rng.IntN(3) == 0 {
				r.Methods = append(r.Methods, m)
			}
		}
		for range rng.IntN(3) {
			if h := someHosts[rng.IntN(len(someHosts))]; !slices.Contains(r.Hosts, h) && rng.IntN(2) == 0 {
				r.Hosts = append(r.Hosts, h)
			}
		}
		for range rng.IntN(3) {
			if headers {
				r.Headers = append(r.Headers, someHeaders[rng.IntN(len(someHeaders))])
			}
		}
		if rng.IntN(4) == 0 {
			r.CORS = &config.CORS{Origins: []string{"*"}}
		}
		if key := fmt.Sprint(r.Path, r.Methods, r.Hosts, r.Headers); !seen[key] {
			seen[key] = true
			d.Routes = append(d.Routes, r)
		}
	}
	return d
}

// randomRequest is a request to the gateway at an address.
func randomRequest(t *testing.T, rng *rand.Rand) *http.Request {
	t.Helper()
	path := ""
	for range 1 + rng.IntN(5) {
		path += "/" + []string{"a", "b", "v1", "c.d", "x", "ann@b.example", "", "c%2Dd", "."}[rng.IntN(9)]
	}
	r, err := http.NewRequest([]string{"GET", "POST", "HEAD", "OPTIONS", "DELETE"}[rng.IntN(5)], "http://gw"+path+[]string{"", "?a=/b"}[rng.IntN(2)], nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = []string{"a.example", "B.example:80", "x.b.example", "x.y.example", "other"}[rng.IntN(5)]
	if v := rng.IntN(4); v > 0 {
		r.Header.Set("X-One", fmt.Sprint(v))
	}
	if v := rng.IntN(4); v > 0 {
		r.Header.Set("X-Two", []string{"", "p", "p7", "q"}[v])
	}
	return r
}

// routeAt asks an Envoy for the route of a request, and for its path after what Envoy
// makes of it.
func routeAt(t *testing.T, addr string, r *http.Request) (name string, ok bool) {
	t.Helper()
	r = r.Clone(t.Context())
	r.URL.Host = addr
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), res.StatusCode == 200
}

// normalized is a path as Envoy matches it, see the manager of listeners.
func normalized(path string) string {
	path = strings.ReplaceAll(path, "%2D", "-")
	var out []string
	last := false
	for s := range strings.SplitSeq(path[1:], "/") {
		last = s == "" || s == "."
		if !last {
			out = append(out, s)
		}
	}
	text := "/" + strings.Join(out, "/")
	if last && len(out) > 0 {
		text += "/"
	}
	return text
}

// The route that a rehearsal finds for a request is the one that a real Envoy finds,
// among thousands of requests and whatever the document. What a header decides is known
// from the route that the request had, or said not to be known.
func TestRoutesAreThoseOfARealEnvoy(t *testing.T) {
	t.Parallel()
	tried, open := 0, 0
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 3))
		a, b := randomDocument(rng, seed%2 == 1), randomDocument(rng, seed%2 == 1)
		if seed%2 == 1 { // that differ by some routes
			b = a
			b.Routes = slices.Clone(a.Routes)
			for range 4 {
				b.Routes = slices.Delete(b.Routes, 0, 1)
			}
		}
		summer := recording.NewSummer([]byte("key"))
		inForce, proposed := newMatcher(a, summer), newMatcher(b, summer)
		first, second := envoyOf(t, a), envoyOf(t, b)
		for range 800 {
			q := randomRequest(t, rng)
			if q.Method == "HEAD" { // whose answer has no name: a header condition is all that GET and HEAD differ in
				continue
			}
			name, ok := routeAt(t, first, q)
			if !ok {
				t.Fatalf("%s %s: %s", q.Method, q.URL.Path, name)
			}
			want, _ := routeAt(t, second, q)
			r := &recording.Request{Method: q.Method, Host: q.Host, Path: summer.Path(normalized(q.URL.EscapedPath())), Route: name}
			seen := inForce.headersOf(r)
			tried++
			if got := inForce.find(r, seen); got.name != name || got.unknown != "" {
				t.Fatalf("seed %d: %s %s %s %v: found %+v again, Envoy has %s\n%+v", seed, q.Method, q.Host, q.URL, q.Header, got, name, a.Routes)
			}
			switch got := proposed.find(r, seen); {
			case got.unknown != "":
				open++
			case got.name != want:
				t.Fatalf("seed %d: %s %s %s %v: found %+v, Envoy has %s\n%+v", seed, q.Method, q.Host, q.URL, q.Header, got, want, b.Routes)
			}
		}
	}
	t.Logf("%d requests, of which what headers decide was not known of %d", tried, open)
	if tried < 4000 || open > tried/5 {
		t.Errorf("%d of %d requests were not decided", open, tried)
	}
}
