package resources

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// answering is a product's address that answers by f, and how often it did.
func answering(t *testing.T, f http.HandlerFunc) (addr string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/up" {
			asked.Add(1)
		}
		f(w, r)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), asked
}

// always answers with a status, and so does its health.
func always(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// odd answers requests of odd numbers by f, and the others with 200.
func odd(f http.HandlerFunc) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%2 == 1 {
			f(w, r)
		}
	}
}

// fronted is a gateway before products, each with an open route of its name.
func fronted(t *testing.T, products ...config.Product) (url string) {
	t.Helper()
	d := defaults(t)
	d.AnonymousPerMinute = 1 << 20
	d.Products = append(d.Products, products...)
	for _, p := range products {
		d.Routes = append(d.Routes, config.Route{Name: "to." + p.Name, Path: "/v1/to/" + p.Name, Methods: []string{"GET", "POST"}, Product: p.Name, Auth: []string{"none"}})
	}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	s := build(t, d, Options{Addresses: addresses})
	return "http://" + running(t, static(t, s, Addresses{Gateway: "127.0.0.1:0"})) + "/v1/to/"
}

func product(name string, addrs ...string) config.Product {
	p := config.Product{Name: name}
	for _, a := range addrs {
		p.Upstreams = append(p.Upstreams, config.Upstream{Address: a})
	}
	return p
}

// A request of a safe method is sent again after the answers that the product
// names, and after an attempt that takes too long; one that may have had an
// effect is not.
func TestRetriesInARealEnvoy(t *testing.T) {
	t.Parallel()
	busy, busyAsked := answering(t, odd(always(503)))
	slow, _ := answering(t, odd(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	again, late, once := product("again", busy), product("late", slow), product("once", busy)
	again.RetryOn = []uint32{503}
	late.TryTimeout = "200ms"
	none := uint32(0)
	once.Retries, once.RetryOn = &none, []uint32{503}
	url := fronted(t, again, late, once)
	for _, c := range []struct {
		method, product string
		status          int
		times           int64
	}{
		{"GET", "again", 200, 2}, {"POST", "again", 503, 1}, {"POST", "again", 200, 1}, {"GET", "once", 503, 1}, {"GET", "once", 200, 1},
	} {
		before := busyAsked.Load()
		res, _ := request(t, c.method, url+c.product, nil)
		if n := busyAsked.Load() - before; res.StatusCode != c.status || n != c.times {
			t.Errorf("%s %s: %d after %d attempts, want %d after %d", c.method, c.product, res.StatusCode, n, c.status, c.times)
		}
	}
	if res, _ := request(t, "GET", url+"late", nil); res.StatusCode != 200 {
		t.Errorf("an attempt that took too long: %d", res.StatusCode)
	}
}

// An address that fails its health check, or answers errors in a row where the
// product says that those count, gets no requests while another is well.
func TestSickAddressesInARealEnvoy(t *testing.T) {
	t.Parallel()
	well, _ := answering(t, always(200))
	sick, _ := answering(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) })
	checked, watched := product("checked", well, sick), product("watched", well, sick)
	checked.Health = &config.Health{Path: "/up", Interval: "50ms", Timeout: "2s", Unhealthy: 1}
	watched.Outliers = config.Outliers{ServerErrors: 3, Interval: "50ms", Ejection: "10m"}
	url := fronted(t, checked, watched)
	for _, name := range []string{"checked", "watched"} {
		eventually(t, name, func() error {
			for i := range 40 {
				if res, _ := request(t, "GET", url+name, nil); res.StatusCode != 200 {
					return fmt.Errorf("request %d: %d", i, res.StatusCode)
				}
			}
			return nil
		})
	}
}

// What is more than a product takes at once waits for nothing.
func TestFullProductInARealEnvoy(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	busy, _ := answering(t, func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-leave })
	full := product("full", busy)
	full.MaxRequests = 1
	url := fronted(t, full)
	done := make(chan int, 1)
	go func() {
		res, err := http.Post(url+"full", "text/plain", strings.NewReader("x"))
		if err != nil {
			done <- 0
			return
		}
		res.Body.Close()
		done <- res.StatusCode
	}()
	<-entered
	if res, body := request(t, "POST", url+"full", strings.NewReader("x")); res.StatusCode != 503 || !strings.Contains(body, "service_unavailable") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	close(leave)
	if status := <-done; status != 200 {
		t.Errorf("the request that was there: %d", status)
	}
}

// eventually calls f until it returns nil: Envoy gives no signal.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}
