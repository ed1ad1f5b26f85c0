package resources

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"net"
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

// Headers are changed in both directions; what a template names comes from the
// request, and nothing of the caller's own takes its place.
func TestHeaderEditsInARealEnvoy(t *testing.T) {
	t.Parallel()
	show := func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Gone"], w.Header()["X-Both"] = []string{"1"}, []string{"product"}
		for _, name := range []string{"X-Set", "X-Id", "X-Account", "X-Add", "X-Note", "X-Address", "X-Request"} {
			fmt.Fprintf(w, "%s=%s\n", name, strings.Join(r.Header.Values(name), "+"))
		}
	}
	url := serving(t, []service{{"show", "", show}},
		config.Route{Name: "edited", Path: "/v1/things/{id}/of/{owner}/*",
			RequestHeaders: &config.HeaderEdit{
				Set: map[string]string{"X-Set": "100% {{sure}}", "X-Id": "{owner}/{id}", "X-Account": "{account.id}", "X-Address": "{client.address}", "X-Request": "{request.id}"},
				Add: map[string]string{"x-add": "two"}, Remove: []string{"x-note"}},
			ResponseHeaders: &config.HeaderEdit{Set: map[string]string{"x-thing": "{id}", "x-request": "{request.id}"}, Add: map[string]string{"x-both": "edge"}, Remove: []string{"x-gone"}}},
		config.Route{Name: "plain", Path: "/v1/plain"},
		config.Route{Name: "here", Path: "/v1/here/{id}", Respond: &config.Respond{Status: 200, Body: "{}"}, ResponseHeaders: &config.HeaderEdit{Set: map[string]string{"x-thing": "{id}"}}},
	)
	sent := []string{"X-Set", "mine", "X-Id", "mine", "X-Account", "acct_forged", "X-Add", "one", "X-Note", "note"}
	res, body := request(t, "GET", url+"/v1/things/a%20b/of/me/and/more?x=/v1/things/z", nil, sent...)
	id := res.Header.Get("X-Request-Id")
	want := "X-Set=100% {sure}\nX-Id=me/a%20b\nX-Account=\nX-Add=one+two\nX-Note=\nX-Address=127.0.0.1\nX-Request=" + id + "\n"
	if body != want {
		t.Errorf("the product got\n%swant\n%s", body, want)
	}
	h := res.Header
	if h.Get("X-Gone") != "" || fmt.Sprint(h.Values("X-Both")) != "[product edge]" || h.Get("X-Thing") != "a%20b" || h.Get("X-Request") != id || id == "" {
		t.Errorf("the caller got %v", h)
	}
	if res, body := request(t, "GET", url+"/v1/plain", nil, sent...); !strings.Contains(body, "X-Account=acct_forged") || res.Header.Get("X-Gone") != "1" || res.Header.Get("X-Thing") != "" {
		t.Errorf("a route without: %v %s", res.Header, body)
	}
	if res, _ := request(t, "GET", url+"/v1/here/7", nil); res.Header.Get("X-Thing") != "7" || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("an answer of the edge: %v", res.Header)
	}
}

// Callers are sent where the route says, with their query, and nowhere else.
func TestRedirectsInARealEnvoy(t *testing.T) {
	t.Parallel()
	url := serving(t, []service{{"svc", "", naming("svc")}},
		config.Route{Name: "moved", Path: "/old/{a}/in/{b}", Redirect: &config.Redirect{Scheme: "https", Host: "new.example:8443", Path: "/new/{b}/{a}", Status: 301}},
		config.Route{Name: "host", Path: "/host/*", Redirect: &config.Redirect{Host: "new.example"}},
		config.Route{Name: "prefix", Path: "/pre/*", Redirect: &config.Redirect{Host: "new.example", Prefix: "/v2", Status: 308}},
		config.Route{Name: "secure", Path: "/secure", Hosts: []string{"own.example"}, Redirect: &config.Redirect{Scheme: "https", Status: 302}},
	)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, c := range []struct {
		path, host string
		status     int
		to         string
	}{
		{"/old/1/in/2?q=a%20b", "", 301, "https://new.example:8443/new/2/1?q=a%20b"},
		{"/host/a/b?c", "evil.example", 307, "http://new.example/host/a/b?c"},
		{"/host//evil.example/%2e%2e/", "", 307, "http://new.example/host/"},
		{"/pre/a", "", 308, "http://new.example/v2/a"},
		{"/secure?x=1", "own.example", 302, "https://own.example/secure?x=1"},
		{"/secure", "evil.example", 404, ""},
	} {
		r, err := http.NewRequest("POST", url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if got := res.Header.Get("Location"); res.StatusCode != c.status || got != c.to || res.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s at %q: %d %s, want %d %s", c.path, c.host, res.StatusCode, got, c.status, c.to)
		}
	}
}

// Texts that are long enough are compressed as the client asks, and nothing else is;
// events arrive one by one.
func TestCompressionInARealEnvoy(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("all work and no play ", 500)
	next := make(chan struct{})
	answer := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		w.Header().Set("ETag", `"1"`)
		switch r.URL.Query().Get("as") {
		case "short":
			fmt.Fprint(w, text[:100])
		case "events":
			for i := range 2 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				w.(http.Flusher).Flush()
				<-next
			}
		case "packed":
			w.Header().Set("Content-Encoding", "br")
			fmt.Fprint(w, text)
		default:
			fmt.Fprint(w, text)
		}
	}
	url := serving(t, []service{{"texts", "", answer}},
		config.Route{Name: "packed", Path: "/packed", Compress: true},
		config.Route{Name: "plain", Path: "/plain"},
	)
	t.Cleanup(func() { close(next) }) // before the products end
	for _, c := range []struct{ what, path, accept, encoding string }{
		{"JSON", "/packed?type=application/json", "gzip", "gzip"},
		{"with a character set", "/packed?type=text/html%3B+charset=utf-8", "gzip", "gzip"},
		{"brotli", "/packed?type=text/plain", "br, gzip;q=0.5", "br"},
		{"zstd", "/packed?type=text/plain", "zstd", "zstd"},
		{"the best of all", "/packed?type=text/plain", "gzip, br, zstd", "zstd"},
		{"none wanted", "/packed?type=text/plain", "identity", ""},
		{"a picture", "/packed?type=image/png", "gzip", ""},
		{"short", "/packed?type=text/plain&as=short", "gzip", ""},
		{"compressed already", "/packed?type=text/plain&as=packed", "gzip", "br"},
		{"a route that does not ask", "/plain?type=text/plain", "gzip", ""},
	} {
		res, body := request(t, "GET", url+c.path, nil, "Accept-Encoding", c.accept)
		ours := c.encoding != "" && !strings.Contains(c.path, "as=packed")
		etag := map[bool]string{true: `W/"1"`, false: `"1"`}[ours]
		if res.Header.Get("Content-Encoding") != c.encoding || res.Header.Get("ETag") != etag || ours != (len(body) < len(text)/10 && !strings.Contains(c.path, "short")) ||
			res.Header.Get("X-Ratelimit-Limit") == "" || ours && res.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %d bytes, %v", c.what, len(body), res.Header)
		}
		if c.encoding != "gzip" {
			continue
		}
		if z, err := gzip.NewReader(strings.NewReader(body)); err != nil {
			t.Error(err)
		} else if b, err := io.ReadAll(z); err != nil || string(b) != text {
			t.Errorf("%s: %v: other text came out", c.what, err)
		}
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /packed?type=text/event-stream&as=events HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
	in := bufio.NewReader(c)
	for i := range 2 { // the second is not sent before the first is here
		for line := ""; line != fmt.Sprintf("data: %d\n", i); {
			if line, err = in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		next <- struct{}{}
	}
}
