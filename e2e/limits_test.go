package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/e2e/harness"
)

// edgesOf are settings for n edges, whose gateways listen at gateways.
func edgesOf(t testing.TB, n int) (env map[string]string, gateways []string) {
	t.Helper()
	env, gateways, err := harness.Edges(n)
	if err != nil {
		t.Fatal(err)
	}
	return env, gateways
}

// limitedKey makes a key with a limit of its own that all edges know.
func (s *stack) limitedKey(t testing.TB, perMinute int, gateways []string) string {
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
	for _, addr := range gateways {
		eventually(t, "the edge knows the key", func() error {
			// A scope that it lacks: the request does not count against the others' for long.
			r, err := try(http.MethodPost, "http://"+addr+"/v1/streams", k.Key, map[string]any{})
			if err == nil && r.StatusCode != http.StatusForbidden {
				err = fmt.Errorf("status %d", r.StatusCode)
			}
			return err
		})
	}
	return k.Key
}

// Three edges share one limit: at ten times the limit they let through what one
// edge would, and the rate headers are true.
func TestThreeEdgesShareALimit(t *testing.T) {
	t.Parallel()
	const edges, perMinute = 3, 240
	env, gateways := edgesOf(t, edges)
	s := own(t, env)
	for _, admin := range strings.Split(s.dev["SLUICE_ENVOY_ADMIN_URLS"], ",") {
		eventually(t, "the edges know each other", func() error {
			r, err := try(http.MethodGet, admin+"/stats?filter=sluice_fleet_edges", "", nil)
			if err == nil && !strings.Contains(r.body, ": 3\n") {
				err = fmt.Errorf("stats: %q", r.body)
			}
			return err
		})
	}
	key := s.limitedKey(t, perMinute, gateways)
	admitted, refused := s.flood(t, key, gateways, perMinute*10/60, 9)
	admitted += edges // the requests that found out whether the edges know the key
	t.Logf("%d let through, %d refused, of a limit of %d", admitted, refused, perMinute)
	if admitted < perMinute*98/100 || admitted > perMinute*105/100 {
		t.Errorf("%d let through in one window, want %d to %d", admitted, perMinute*98/100, perMinute*105/100)
	}
	for i, addr := range gateways {
		r := call(t, http.MethodGet, "http://"+addr+"/v1/streams", key, nil)
		wantError(t, r, http.StatusTooManyRequests, "rate_limit_exceeded")
		if r.Header.Get("X-RateLimit-Limit") != strconv.Itoa(perMinute) || r.Header.Get("X-RateLimit-Remaining") != "0" || number(t, r, "Retry-After") < 1 {
			t.Errorf("edge %d: %v", i, r.Header)
		}
	}
}

// flood sends perSecond requests a second for some seconds, spread over the
// edges, and counts how they were answered.
func (s *stack) flood(t testing.TB, key string, gateways []string, perSecond, seconds int) (admitted, refused int) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	pace := time.NewTicker(time.Second / time.Duration(perSecond))
	defer pace.Stop()
	for i := range perSecond * seconds {
		<-pace.C
		wg.Go(func() {
			r, err := try(http.MethodGet, "http://"+gateways[i%len(gateways)]+"/v1/streams", key, nil)
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
