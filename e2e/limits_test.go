package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// edgeVariables are the addresses that `up` gives to each edge, 100 ports apart.
var edgeVariables = []string{"SLUICE_GATEWAY_ADDR", "SLUICE_RUNTIME_ADDR", "SLUICE_ENVOY_ADMIN_ADDR", "SLUICE_EDGE_METRICS_ADDR"}

// blocks counts the blocks of ports that fleets of this run have taken.
var blocks atomic.Int32

// fleetAddrs gives addresses for n edges, of up to ten. They lie below the ports
// that the system gives to connections and to listeners on port 0, so that
// nothing takes one between the look here and the start of an edge.
func fleetAddrs(t testing.TB, n int) map[string]string {
	t.Helper()
	env := map[string]string{"SLUICE_EDGES": strconv.Itoa(n), "SLUICE_EDGE_CONCURRENCY": "1"}
	eventually(t, "ports for the edges", func() error {
		base := 12000 + (os.Getpid()+int(blocks.Add(1)))%20*1000
		for i, v := range edgeVariables {
			env[v] = net.JoinHostPort("127.0.0.1", strconv.Itoa(base+10*i))
			for e := range n {
				l, err := net.Listen("tcp", shifted(t, env[v], 100*e))
				if err != nil {
					return err
				}
				defer l.Close()
			}
		}
		return nil
	})
	return env
}

func shifted(t testing.TB, addr string, by int) string {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	p, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(host, strconv.Itoa(p+by))
}

// limitedKey makes a key with a limit of its own that all n edges know.
func (s *stack) limitedKey(t testing.TB, perMinute, n int) string {
	t.Helper()
	r := call(t, http.MethodPost, s.url("/v1/auth/keys"), s.dev["SLUICE_SESSION_TOKEN"],
		map[string]any{"name": t.Name(), "scopes": []string{"streams:read"}, "rate_limit_per_minute": perMinute})
	wantStatus(t, r, http.StatusCreated)
	k := into[struct {
		Key                   string
		Rate_Limit_Per_Minute int
	}](t, r)
	if k.Rate_Limit_Per_Minute != perMinute {
		t.Fatal(r.body)
	}
	for i := range n {
		eventually(t, "the edge knows the key", func() error {
			// A scope that it lacks: the request does not count against the others' for long.
			r, err := try(http.MethodPost, s.gateway(t, i)+"/v1/streams", k.Key, map[string]any{})
			if err == nil && r.StatusCode != http.StatusForbidden {
				err = fmt.Errorf("status %d", r.StatusCode)
			}
			return err
		})
	}
	return k.Key
}

// gateway is the address of the i'th edge's.
func (s *stack) gateway(t testing.TB, i int) string {
	t.Helper()
	return "http://" + shifted(t, strings.TrimPrefix(s.dev["SLUICE_GATEWAY_URL"], "http://"), 100*i)
}

// Three edges share one limit: at ten times the limit they let through what one
// edge would, and the rate headers are true.
func TestThreeEdgesShareALimit(t *testing.T) {
	t.Parallel()
	const edges, perMinute = 3, 240
	s := own(t, fleetAddrs(t, edges))
	for _, admin := range strings.Split(s.dev["SLUICE_ENVOY_ADMIN_URLS"], ",") {
		eventually(t, "the edges know each other", func() error {
			r, err := try(http.MethodGet, admin+"/stats?filter=sluice_fleet_edges", "", nil)
			if err == nil && !strings.Contains(r.body, ": 3\n") {
				err = fmt.Errorf("stats: %q", r.body)
			}
			return err
		})
	}
	key := s.limitedKey(t, perMinute, edges)
	admitted, refused := s.flood(t, key, edges, perMinute*10/60, 9)
	admitted += edges // the requests that found out whether the edges know the key
	t.Logf("%d let through, %d refused, of a limit of %d", admitted, refused, perMinute)
	if admitted < perMinute*98/100 || admitted > perMinute*105/100 {
		t.Errorf("%d let through in one window, want %d to %d", admitted, perMinute*98/100, perMinute*105/100)
	}
	for i := range edges {
		r := call(t, http.MethodGet, s.gateway(t, i)+"/v1/streams", key, nil)
		wantError(t, r, http.StatusTooManyRequests, "rate_limit_exceeded")
		if r.Header.Get("X-RateLimit-Limit") != strconv.Itoa(perMinute) || r.Header.Get("X-RateLimit-Remaining") != "0" || number(t, r, "Retry-After") < 1 {
			t.Errorf("edge %d: %v", i, r.Header)
		}
	}
}

// flood sends perSecond requests a second for some seconds, spread over the
// edges, and counts how they were answered.
func (s *stack) flood(t testing.TB, key string, edges, perSecond, seconds int) (admitted, refused int) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	pace := time.NewTicker(time.Second / time.Duration(perSecond))
	defer pace.Stop()
	for i := range perSecond * seconds {
		<-pace.C
		wg.Go(func() {
			r, err := try(http.MethodGet, s.gateway(t, i%edges)+"/v1/streams", key, nil)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case r.StatusCode == http.StatusOK:
				admitted++
			case r.StatusCode == http.StatusTooManyRequests:
				refused++
			default:
				t.Errorf("status %d: %s", r.StatusCode, r.body)
			}
		})
	}
	wg.Wait()
	return admitted, refused
}
