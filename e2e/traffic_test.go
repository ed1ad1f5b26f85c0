package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/e2e/harness"
)

// slowness is how long the shop takes for /slow.
const slowness = 400 * time.Millisecond

// shop is a product of a customer's own.
func shop(t testing.TB) (address string, waiting chan struct{}) {
	t.Helper()
	waiting = make(chan struct{})
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case strings.HasSuffix(r.URL.Path, "/missing"):
			w.WriteHeader(http.StatusNotFound)
		case strings.HasSuffix(r.URL.Path, "/broken"):
			w.WriteHeader(http.StatusInternalServerError)
		case strings.HasSuffix(r.URL.Path, "/unavailable"):
			w.WriteHeader(http.StatusServiceUnavailable)
		case strings.HasSuffix(r.URL.Path, "/slow"):
			<-time.After(slowness)
		case strings.HasSuffix(r.URL.Path, "/wait"):
			waiting <- struct{}{}
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/hang"):
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, "12345")
		}
	}))
	t.Cleanup(p.Close)
	return p.Listener.Addr().String(), waiting
}

// shopper makes requests and keeps count of them.
type shopper struct {
	*stack
	want    tally
	waiting chan struct{}
}

// do makes a request to a route of a product, and counts it by its answer.
func (c *shopper) do(t testing.TB, product, route, method, path, credential string, body any) response {
	t.Helper()
	r := call(t, method, c.url(path), credential, body)
	code := ""
	if strings.Contains(r.body, `"documentation_url"`) {
		code = into[envelope](t, r).Error.Code
	}
	class := strconv.Itoa(r.StatusCode/100) + "xx"
	switch code {
	case "ROUTE_NOT_MAPPED":
		product, route = "", "unmapped"
	case "not_found":
		product, route = "", "absent"
	}
	if method == "HEAD" && route != "shop.any" {
		method = "GET" // of a route that has GET alone
	}
	c.want.request(product, route, method, class, code)
	return r
}

// traffic makes requests of all kinds.
func (c *shopper) traffic(t testing.TB, key, limited string) {
	t.Helper()
	status := func(want int, r response) {
		t.Helper()
		wantStatus(t, r, want)
	}
	for range 5 {
		status(200, c.do(t, "shop", "shop.read", "GET", "/v1/shop/ok", key, nil))
	}
	for range 2 {
		status(200, c.do(t, "shop", "shop.read", "HEAD", "/v1/shop/ok", key, nil))
		status(404, c.do(t, "shop", "shop.read", "GET", "/v1/shop/missing", key, nil))
		status(500, c.do(t, "shop", "shop.read", "GET", "/v1/shop/broken", key, nil))
		status(503, c.do(t, "shop", "shop.read", "GET", "/v1/shop/unavailable", key, nil))
		status(401, c.do(t, "shop", "shop.read", "GET", "/v1/shop/ok", "", nil))
		status(401, c.do(t, "shop", "shop.read", "GET", "/v1/shop/ok", swapLast(key), nil))
		status(403, c.do(t, "shop", "shop.write", "POST", "/v1/shop-write", key, "x"))
		status(200, c.do(t, "shop", "shop.any", "PUT", "/v1/any/1", "", "abc"))
		status(200, c.do(t, "shop", "shop.any", "DELETE", "/v1/any/1", "", nil))
		status(200, c.do(t, "shop", "shop.any", "HEAD", "/v1/any/1", "", nil))
		status(403, c.do(t, "", "", "GET", "/v1/no/such/"+key[:8], "", nil))
		status(404, c.do(t, "", "", "GET", "/nowhere", "", nil))
		status(418, c.do(t, "", "shop.sign", "GET", "/v1/sign", "", nil))
		status(503, c.do(t, "closed", "closed.read", "GET", "/v1/closed", "", nil))
		status(413, c.do(t, "shop", "shop.small", "POST", "/v1/shop-small", "", "more than ten bytes"))
	}
	status(200, c.do(t, "shop", "shop.read", "GET", "/v1/shop/slow", key, nil))
	status(504, c.do(t, "shop", "shop.hang", "GET", "/v1/hang", "", nil))
	for range 6 { // some of them are over the limit
		if r := c.do(t, "shop", "shop.read", "GET", "/v1/shop/ok", limited, nil); r.StatusCode != 200 && r.StatusCode != 429 {
			t.Fatal(r.Status, r.body)
		}
	}
	c.leave(t)
	for _, m := range []struct {
		text   string
		status int
		code   string
	}{
		{"GET /v1%2Fstreams HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_request"},
		{"GET /v1/streams HTTP/1.1\r\nHost: a\r\nX_Y: 1\r\n\r\n", 400, "invalid_request"},
		{"GET /v1/streams HTTP/1.1\r\n\r\n", 400, "invalid_request"},
		{"HELLO\r\n\r\n", 400, "invalid_request"},
		{"POST /v1/streams HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400, "invalid_request"},
		{"GET /v1/streams HTTP/1.1\r\nHost: a\r\nX-Big: " + strings.Repeat("a", 100<<10) + "\r\n\r\n", 431, "headers_too_large"},
	} {
		status(m.status, c.raw(t, m.text))
		c.want.request("", "(refused)", "", "4xx", m.code)
	}
}

// leave begins a request and ends it before there is an answer.
func (c *shopper) leave(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	q, err := http.NewRequestWithContext(ctx, "PATCH", c.url("/v1/any/wait"), nil)
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error)
	go func() {
		r, err := client.Do(q)
		if err == nil {
			err = errors.Join(errors.New("there was an answer"), r.Body.Close())
		}
		left <- err
	}()
	<-c.waiting
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.want.request("shop", "shop.any", "PATCH", "none", "")
}

// Whatever clients send is in the metrics of an edge with two workers, once and under the right
// labels: before and after another Envoy has taken over, and under another configuration.
func TestTrafficOfAProductIsExact(t *testing.T) {
	t.Parallel()
	s := own(t, map[string]string{"SLUICE_EDGE_CONCURRENCY": "2"})
	s.unlimited(t)
	c := &shopper{stack: s, want: tally{}}
	var address string
	address, c.waiting = shop(t)
	c.open(t, address)
	key, _ := s.newKey(t, "streams:read")
	limited := s.limitedKey(t, 3, []string{s.front()})

	c.traffic(t, key, limited)
	text := c.agrees(t, "at first")
	c.histograms(t, text)
	if n := line(t, text, `sluice_edge_upstream_healthy_addresses{product="shop"}`); n != 1 {
		t.Errorf("%v addresses of the shop are well", n)
	}
	if n := line(t, text, `sluice_edge_requests_active{listener="gateway"}`); n != 0 {
		t.Errorf("%v requests are under way", n)
	}

	if err := syscall.Kill(s.child(t, "edge"), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another Envoy serves", func() error {
		if r := call(t, http.MethodGet, "http://"+s.env["SLUICE_EDGE_METRICS_ADDR"]+"/metrics", "", nil); line(t, r.body, "sluice_agent_envoy_epoch") != 1 || line(t, r.body, "envoy_server_live") != 1 {
			return errors.New("not yet")
		}
		return nil
	})
	c.traffic(t, key, limited)
	c.agrees(t, "after a hot restart")

	s.change(t, "routes/shop.read", map[string]any{"methods": []string{"GET"}, "path": "/v1/shop/*", "product": "shop", "auth": []string{"key"}, "scope": "streams:read", "body_limit": 7})
	s.put(t, "routes/shop.new", map[string]any{"methods": []string{"GET"}, "path": "/v1/shop-new", "product": "shop", "auth": []string{"none"}})
	wantStatus(t, c.do(t, "shop", "shop.new", "GET", "/v1/shop-new", "", nil), http.StatusOK)
	c.traffic(t, key, limited)
	if text = c.agrees(t, "under another configuration"); strings.Contains(text, "@") || strings.Contains(text, key[:20]) || strings.Contains(text, "/v1/") {
		t.Error("a label has a revision, a key or a path")
	}
}

// open puts the shop behind the gateway.
func (c *shopper) open(t testing.TB, address string) {
	t.Helper()
	upstream := func(address string) map[string]any {
		return map[string]any{"upstreams": []any{map[string]any{"address": address}}, "retries": 0}
	}
	c.change(t, "products/shop", upstream(address))
	c.change(t, "products/closed", upstream(freeAddrs(t, 1)[0])) // where nobody else will listen
	for name, r := range map[string]map[string]any{
		"shop.read":   {"methods": []string{"GET"}, "path": "/v1/shop/*", "product": "shop", "auth": []string{"key"}, "scope": "streams:read"},
		"shop.write":  {"methods": []string{"POST"}, "path": "/v1/shop-write", "product": "shop", "auth": []string{"key"}, "scope": "streams:write"},
		"shop.small":  {"methods": []string{"POST"}, "path": "/v1/shop-small", "product": "shop", "auth": []string{"none"}, "body_limit": 10},
		"shop.any":    {"path": "/v1/any/*", "product": "shop", "auth": []string{"none"}},
		"shop.hang":   {"methods": []string{"GET"}, "path": "/v1/hang", "product": "shop", "auth": []string{"none"}, "timeout": "300ms"},
		"shop.sign":   {"methods": []string{"GET"}, "path": "/v1/sign", "auth": []string{"none"}, "respond": map[string]any{"status": 418, "body": "{}"}},
		"closed.read": {"methods": []string{"GET"}, "path": "/v1/closed", "product": "closed", "auth": []string{"none"}},
	} {
		c.change(t, "routes/"+name, r)
	}
	c.held(t)
}

// An edge whose control planes are gone goes on to show its traffic, though its usage waits; and
// so it does when Envoy has crashed.
func TestTrafficIsShownWithoutAControlPlane(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	w := newWire(t, s.env["SLUICE_XDS_ADDR"])
	e := s.addEdge(t, "edge-cut", w.addr())
	requests := func(n int) {
		t.Helper()
		for range n {
			wantStatus(t, call(t, http.MethodGet, e.base+"/v1/nothing/here", "", nil), http.StatusForbidden)
		}
	}
	const line = `sluice_edge_requests_total{method="GET",product="",route="unmapped",status_class="4xx"} `
	requests(3)
	e.shows(t, line+"3\n")
	w.set(true)
	e.is(t, "cached")
	requests(4)
	e.shows(t, line+"7\n")

	pids := e.envoys(t)
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another Envoy serves", func() error {
		if now := e.envoys(t); len(now) == 0 || now[0] == pids[0] {
			return errors.New("not yet")
		}
		r, err := try(http.MethodGet, e.base+"/v1/streams", "", nil)
		if err == nil && r.StatusCode != http.StatusUnauthorized {
			err = errors.New(r.Status)
		}
		return err
	})
	requests(2)
	e.shows(t, line+"9\n")
}

// envoys are the processes of the edge's Envoys.
func (e *edge) envoys(t testing.TB) (pids []int) {
	t.Helper()
	for _, p := range harness.Children(e.PID()) {
		if p.Args[0] == need(t, "SLUICE_ENVOY") {
			pids = append(pids, p.PID)
		}
	}
	return pids
}
