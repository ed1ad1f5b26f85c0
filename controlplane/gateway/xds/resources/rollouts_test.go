package resources

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
)

func share(n uint32) *uint32 { return &n }

// service is a product that runs in the test.
type service struct {
	name, host string
	handler    http.HandlerFunc
}

// serving is a gateway with products and routes, which are open and lead to the first
// product where they say nothing else.
func serving(t *testing.T, services []service, routes ...config.Route) string {
	t.Helper()
	d := defaults(t)
	d.AnonymousPerMinute = 1 << 20
	for _, s := range services {
		backend := httptest.NewServer(s.handler)
		t.Cleanup(backend.Close)
		d.Products = append(d.Products, config.Product{Name: s.name, Host: s.host, Upstreams: []config.Upstream{{Address: backend.Listener.Addr().String()}}})
	}
	for _, r := range routes {
		if r.Product == "" && r.Respond == nil && r.Redirect == nil {
			r.Product = services[0].name
		}
		r.Auth = []string{"none"}
		d.Routes = append(d.Routes, r)
	}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	return "http://" + running(t, static(t, build(t, d, Options{Addresses: addresses, DocsBase: "http://gw"}), Addresses{Gateway: "127.0.0.1:0"}))
}

// naming answers with a name, the host and the path.
func naming(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s %s %s", name, r.Host, r.URL.RequestURI())
	}
}

// served counts who answers n requests.
func served(t *testing.T, n int, ask func(i int) string) map[string]int {
	t.Helper()
	got := map[string]int{}
	for i := range n {
		got[strings.Fields(ask(i) + " nobody")[0]]++
	}
	return got
}

// likely reports whether so many of n are a share of p percent, within five standard
// deviations.
func likely(got, n int, p float64) bool {
	mean := float64(n) * p / 100
	return math.Abs(float64(got)-mean) <= 5*math.Sqrt(mean*(1-p/100))+0.5
}

// Weights and headers choose the version in a real Envoy, with its own host; a
// credential keeps its caller where the route is sticky.
func TestSplitInARealEnvoy(t *testing.T) {
	t.Parallel()
	v2 := func(n uint32) config.ProductVersion { return config.ProductVersion{Product: "two", Weight: share(n)} }
	url := serving(t, []service{{"one", "", naming("one")}, {"two", "two.internal", naming("two")}, {"three", "", naming("three")}},
		config.Route{Name: "drawn", Path: "/drawn/{id}", Methods: []string{"GET"}, Rewrite: &config.Rewrite{Path: "/x/{id}"},
			Split: []config.ProductVersion{v2(20), {Product: "three", Headers: []config.HeaderMatch{{Name: "x-version", Value: "3"}}}, {Product: "three", Weight: share(30)}}},
		config.Route{Name: "none", Path: "/none", Split: []config.ProductVersion{v2(0)}},
		config.Route{Name: "all", Path: "/all", Split: []config.ProductVersion{v2(100)}},
		config.Route{Name: "pair", Path: "/pair", Split: []config.ProductVersion{v2(40), {Product: "three", Weight: share(60)}}},
		config.Route{Name: "sticky", Path: "/sticky", Sticky: "credential", Split: []config.ProductVersion{v2(25)}},
		config.Route{Name: "sticky.more", Path: "/more", Sticky: "credential", Split: []config.ProductVersion{v2(50)}},
	)
	get := func(path string, headers ...string) string {
		_, body := request(t, "GET", url+path, nil, headers...)
		return body
	}
	const n = 1500
	for path, want := range map[string][3]float64{"/drawn/7": {50, 20, 30}, "/none": {100, 0, 0}, "/all": {0, 100, 0}, "/pair": {0, 40, 60}} {
		got := served(t, n, func(int) string { return get(path) })
		for i, name := range []string{"one", "two", "three"} {
			if !likely(got[name], n, want[i]) {
				t.Errorf("%s: %v of %d, want %v", path, got, n, want)
				break
			}
		}
	}
	if got := get("/all"); got != "two two.internal /all" {
		t.Errorf("a version's host: %q", got)
	}
	if got := served(t, 100, func(int) string { return get("/drawn/7", "X-Version", "3") }); got["three"] != 100 {
		t.Errorf("by header: %v", got)
	}
	first := map[int]string{}
	const callers = 400
	got := served(t, callers, func(i int) string {
		first[i] = get("/sticky", "Authorization", fmt.Sprint("Basic key-", i)) // not one of ours: the route is open
		return first[i]
	})
	if !likely(got["two"], callers, 25) || got["one"]+got["two"] != callers {
		t.Errorf("sticky: %v of %d callers", got, callers)
	}
	for i, was := range first {
		key := fmt.Sprint("Basic key-", i)
		if again := get("/sticky", "Authorization", key); again != was {
			t.Fatalf("caller %d was at %q, and then at %q", i, was, again)
		}
		if strings.HasPrefix(was, "two") && !strings.HasPrefix(get("/more", "Authorization", key), "two") {
			t.Fatalf("caller %d left the version when its weight grew", i)
		}
	}
	if got := served(t, 50, func(int) string { return get("/sticky") }); got["one"] != 50 {
		t.Errorf("without a credential: %v", got)
	}
}

// A copy has what the product gets but for secrets, nobody waits for it, and its
// failures reach nobody.
func TestMirrorInARealEnvoy(t *testing.T) {
	t.Parallel()
	copies := make(chan *http.Request, 10)
	release := make(chan struct{})
	shadow := func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		r.Header.Set("Body", string(b))
		copies <- r
		<-release // nobody gets the answer
	}
	url := serving(t, []service{{"svc", "", naming("svc")}, {"shadow", "", shadow}},
		config.Route{Name: "all", Path: "/v1/all/{id}", Mirror: &config.Mirror{Product: "shadow"}, ForwardCredentials: true, Rewrite: &config.Rewrite{Path: "/x/{id}"},
			RequestHeaders: &config.HeaderEdit{Set: map[string]string{"x-added": "yes"}}},
		config.Route{Name: "never", Path: "/v1/never", Mirror: &config.Mirror{Product: "shadow", Percent: share(0)}},
	)
	t.Cleanup(func() { close(release) }) // before the products end
	for range 5 {
		if _, body := request(t, "GET", url+"/v1/never", nil); !strings.HasPrefix(body, "svc ") {
			t.Fatal(body)
		}
	}
	res, body := request(t, "POST", url+"/v1/all/7?q=1", strings.NewReader("hello"), "Authorization", "Basic x", "Cookie", "a=b", "X-Payment", "p", "X-Note", "n",
		"X-Sluice-Identity", "forged", "X-Sluice-Mirror-Of", "forged")
	if res.StatusCode != 200 || !strings.HasPrefix(body, "svc ") {
		t.Fatal(res.StatusCode, body)
	}
	r := <-copies
	if r.Method != "POST" || r.URL.RequestURI() != "/x/7?q=1" || r.Host != strings.TrimPrefix(url, "http://") {
		t.Errorf("%s %s at %s", r.Method, r.URL.RequestURI(), r.Host)
	}
	for name, want := range map[string]string{"Body": "hello", "X-Note": "n", "X-Added": "yes", "Authorization": "", "Cookie": "", "X-Payment": "", "X-Sluice-Identity": "",
		"X-Sluice-Mirror-Of": "svc", "X-Sluice-Client-Address": "127.0.0.1"} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s of a copy is %q, want %q", name, got, want)
		}
	}
	if len(copies) > 0 {
		t.Error("there were more copies")
	}
	large := strings.Repeat("a", 32<<10)
	if res, _ := request(t, "POST", url+"/v1/all/7", strings.NewReader(large)); res.StatusCode != 200 {
		t.Error(res.Status)
	}
	if r := <-copies; r.Header.Get("Body") != large {
		t.Errorf("a copy of a large body has %d bytes", len(r.Header.Get("Body")))
	}
}

// Retries are those of the route: how often, on what, for which methods.
func TestRetriesOfRoutesInARealEnvoy(t *testing.T) {
	t.Parallel()
	var tries sync.Map // by path
	flaky := func(w http.ResponseWriter, r *http.Request) {
		n, _ := tries.LoadOrStore(r.Method+r.URL.Path, new(atomic.Int32))
		count := n.(*atomic.Int32).Add(1)
		switch {
		case strings.HasSuffix(r.URL.Path, "/hangs") && count == 1:
			<-r.Context().Done()
		case count <= 3:
			w.WriteHeader(503)
		}
		fmt.Fprint(w, count)
	}
	on := []uint32{503}
	url := serving(t, []service{{"flaky", "", flaky}},
		config.Route{Name: "product", Path: "/product"},
		config.Route{Name: "route", Path: "/route", Retries: &config.Retries{Attempts: share(3), On: on}},
		config.Route{Name: "few", Path: "/few", Methods: []string{"GET"}, Retries: &config.Retries{Attempts: share(1), On: on}},
		config.Route{Name: "off", Path: "/off", Methods: []string{"GET"}, Retries: &config.Retries{Attempts: share(0), On: on}},
		config.Route{Name: "any", Path: "/any", Retries: &config.Retries{Attempts: share(3), On: on, AnyMethod: true}},
		config.Route{Name: "hangs", Path: "/a/hangs", Methods: []string{"GET"}, Retries: &config.Retries{Attempts: share(3), On: on, TryTimeout: "100ms"}},
	)
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/product", 503, "1"}, {"GET", "/route", 200, "4"}, {"HEAD", "/route", 200, ""}, {"POST", "/route", 503, "1"}, {"GET", "/few", 503, "2"}, {"GET", "/off", 503, "1"},
		{"POST", "/any", 200, "4"}, {"GET", "/a/hangs", 200, "4"},
	} {
		if res, body := request(t, c.method, url+c.path, nil); res.StatusCode != c.status || body != c.body {
			t.Errorf("%s %s: %d after %s tries, want %d after %s", c.method, c.path, res.StatusCode, body, c.status, c.body)
		}
	}
}
