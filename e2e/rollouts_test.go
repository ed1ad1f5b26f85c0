package e2e

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// version is a product that says which one it is, and as whom it was told of the caller.
func version(t *testing.T, name string, seen chan<- *http.Request) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen != nil {
			select {
			case seen <- r:
			default:
			}
		}
		told, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("X-Sluice-Identity"), "v2;u="), ";")
		fmt.Fprintf(w, "%s told %s for %s", name, told, r.Header.Get("X-Account"))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// rolled is a document that gives a version so many of a hundred requests.
func rolled(v1, v2, shadow string, weight int) string {
	return fmt.Sprintf(`
include: [builtin]
classes: [{name: default, per_minute: 10000000}]
plans:
- {name: free, limits: {default: {per_minute: 10000000}}, products: [app]}
- {name: local, limits: {default: {per_minute: 10000000}}, products: [app]}
products:
- {name: app, upstream: %q}
- {name: app-v2, upstream: %q}
- {name: shadow-app, upstream: %q}
routes:
- name: app
  path: /app/*
  product: app
  scope: app:use
  split: [{product: app-v2, weight: %d}, {product: app-v2, headers: [{name: x-version, value: "2"}]}]
  mirror: {product: shadow-app, percent: 20}
  request_headers: {set: {x-account: "{account.id}"}}
- {name: own, path: /own, product: app-v2, scope: app:use}
`, v1, v2, shadow, weight)
}

// crowd asks a route for as long as it is told to, and counts who answers.
type crowd struct {
	mu     sync.Mutex
	got    map[string]int
	failed []string
	after  chan struct{} // of each request
	stop   chan struct{}
	all    sync.WaitGroup
}

func newCrowd(url, key string, callers int) *crowd {
	c := &crowd{got: map[string]int{}, after: make(chan struct{}), stop: make(chan struct{})}
	for range callers {
		c.all.Go(func() {
			for {
				r, err := try(http.MethodGet, url, key, nil)
				c.mu.Lock()
				if err != nil || r.StatusCode != 200 {
					c.failed = append(c.failed, fmt.Sprint(err, r.Response, r.body))
				} else {
					c.got[r.body]++
				}
				c.mu.Unlock()
				select {
				case c.after <- struct{}{}:
				case <-c.stop:
					return
				}
			}
		})
	}
	return c
}

// count returns who answered the next n requests.
func (c *crowd) count(callers, n int) map[string]int {
	for range callers { // those that were under way
		<-c.after
	}
	c.mu.Lock()
	clear(c.got)
	c.mu.Unlock()
	for range n {
		<-c.after
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	got := map[string]int{}
	for body, k := range c.got {
		got[strings.Fields(body)[0]] += k
	}
	return got
}

// A new version gets 5 of a hundred requests, then 50, then all, while callers go on:
// none of them fails, and everything says who has served them.
func TestGradualRollout(t *testing.T) {
	t.Parallel()
	s := lentGateway(t)
	copies := make(chan *http.Request, 1)
	v1, v2, shadow := version(t, "v1", nil), version(t, "v2", nil), version(t, "shadow", copies)
	file := filepath.Join(tempDir(t), "sluice.yaml")
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(file)) })
	apply := func(weight int) {
		t.Helper()
		if err := os.WriteFile(file, []byte(rolled(v1, v2, shadow, weight)), 0o600); err != nil {
			t.Fatal(err)
		}
		s.exits(t, 0, "apply", "-f", file, "--wait")
	}
	apply(0)
	m := newKey.FindStringSubmatch(s.exits(t, 0, "key", "create", "--name", "me", "--scope", "app:use"))
	if m == nil {
		t.Fatal("no key")
	}
	key, url := m[1], s.url("/app/x")
	var account string
	eventually(t, "the key works", func() error {
		r := call(t, http.MethodGet, url, key, nil, "X-Account", "acct_forged")
		if account = strings.TrimPrefix(r.body, "v1 told app for "); r.StatusCode != 200 || !strings.HasPrefix(account, "acct_") || account == "acct_forged" {
			return fmt.Errorf("%d %s", r.StatusCode, r.body)
		}
		return nil
	})
	if r := call(t, http.MethodGet, url, key, nil, "X-Version", "2"); r.body != "v2 told app-v2 for "+account {
		t.Errorf("by header: %s", r.body)
	}
	wantError(t, call(t, http.MethodGet, s.url("/own"), key, nil), 403, "BILLING_003") // the plan is for app

	const callers, n = 4, 1000
	c := newCrowd(url, key, callers)
	for _, weight := range []int{5, 50, 100} {
		apply(weight)
		got := c.count(callers, n)
		t.Logf("weight %d: %v", weight, got)
		p := float64(weight) / 100
		total := float64(got["v1"] + got["v2"])
		if math.Abs(float64(got["v2"])-p*total) > 5*math.Sqrt(total*p*(1-p)) {
			t.Errorf("of %d requests a version of weight %d got %v", n, weight, got)
		}
	}
	close(c.stop)
	c.all.Wait()
	if len(c.failed) > 0 {
		t.Errorf("%d requests failed, the first with %s", len(c.failed), c.failed[0])
	}
	if r := call(t, http.MethodGet, url, key, nil); r.body != "v2 told app-v2 for "+account {
		t.Errorf("at the end: %s", r.body)
	}
	s.saysWhoServed(t)
	if one := <-copies; one.Header.Get("X-Sluice-Identity") != "" || one.Header.Get("Authorization") != "" || one.Header.Get("X-Sluice-Mirror-Of") == "" || one.Header.Get("X-Account") != account {
		t.Errorf("a copy has %v", one.Header)
	}
}

// saysWhoServed looks for the version in the request log and in the metrics, where
// copies are not.
func (s *stack) saysWhoServed(t *testing.T) {
	t.Helper()
	eventually(t, "requests are in the log", func() error { // a sample of them
		_, out, errs := sluice(t, s.env, "requests", "--product", "app-v2", "--route", "app", "--output", "json")
		if !strings.Contains(strings.ReplaceAll(out, ": ", ":"), `"product":"app-v2"`) {
			return fmt.Errorf("%s%s", out, errs)
		}
		return nil
	})
	eventually(t, "metrics have the version", func() error {
		r := call(t, http.MethodGet, "http://"+s.env["SLUICE_EDGE_METRICS_ADDR"]+"/metrics", "", nil)
		for _, product := range []string{"app", "app-v2"} {
			if !strings.Contains(r.body, `sluice_edge_requests_total{method="GET",product="`+product+`",route="app",status_class="2xx"}`) {
				return fmt.Errorf("no %s in %s", product, r.body)
			}
		}
		if strings.Contains(r.body, `sluice_edge_requests_total{method="GET",product="shadow-app"`) {
			t.Fatal("copies are counted as requests")
		}
		return nil
	})
}
