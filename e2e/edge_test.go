package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// raw sends bytes to the gateway and reads one answer.
func (s *stack) raw(t testing.TB, text string) response {
	t.Helper()
	r, err := rawly(s.front(), text, patience)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Replies that Envoy makes before any filter runs are ours as well.
func TestEnvoysOwnReplies(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	cases := map[string]struct {
		text   string
		status int
		code   string
	}{
		"not HTTP":          {"HELLO\r\n\r\n", 400, "invalid_request"},
		"no host":           {"GET /v1/streams HTTP/1.1\r\n\r\n", 400, "invalid_request"},
		"bad length":        {"POST /v1/streams HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400, "invalid_request"},
		"length and chunks": {"POST /v1/streams HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "invalid_request"},
		"huge headers":      {"GET /v1/streams HTTP/1.1\r\nHost: a\r\nX-Big: " + strings.Repeat("a", 100<<10) + "\r\n\r\n", 431, "headers_too_large"},
		"escaped slash":     {"GET /v1%2Fstreams HTTP/1.1\r\nHost: a\r\n\r\n", 400, "invalid_request"},
		"underscore":        {"GET /v1/streams HTTP/1.1\r\nHost: a\r\nX_Y: 1\r\n\r\n", 400, "invalid_request"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { wantError(t, s.raw(t, c.text), c.status, c.code) })
	}
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/streams"), s.dev["SLUICE_API_KEY"], nil), 200)
}

func TestHealth(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	for _, path := range []string{"/health", "/origin-health", "/v1/health"} {
		r := call(t, http.MethodGet, s.url(path), "", nil)
		wantStatus(t, r, 200)
		wantHeaders(t, r)
		if into[struct{ Status string }](t, r).Status != "ok" {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	v := into[map[string]any](t, call(t, http.MethodGet, s.url("/v1/health"), "", nil))
	for _, field := range []string{"status", "latency_ms", "region", "version"} {
		if _, ok := v[field]; !ok {
			t.Errorf("/v1/health lacks %s: %v", field, v)
		}
	}
}

// A request id of the client is not taken over, and each answer has its own.
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	seen := map[string]bool{"mine": true}
	for range 5 {
		r := call(t, http.MethodGet, s.url("/health"), "", nil, "X-Request-ID", "mine")
		id := r.Header.Get("X-Request-ID")
		if seen[id] || id == "" {
			t.Fatalf("request id %q", id)
		}
		seen[id] = true
	}
}

// loadEvery is the least time between two calls of a goroutine of a load. What is under
// test shares the cores with its load, and takes the longer the more there is of it.
const loadEvery = 10 * time.Millisecond

// load calls f from several goroutines until stop is closed and returns how
// many calls were made and the first failures.
func load(stop <-chan struct{}, workers int, f func() error) (calls int64, failures []string) {
	return pacedLoad(stop, loadEvery, workers, f)
}

// pacedLoad is load with another least time between two calls of a goroutine.
func pacedLoad(stop <-chan struct{}, every time.Duration, workers int, f func() error) (calls int64, failures []string) {
	var n atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			pace := time.NewTicker(every)
			defer pace.Stop()
			for {
				select {
				case <-stop:
					return
				default:
				}
				n.Add(1)
				if err := f(); err != nil {
					mu.Lock()
					failures = append(failures, err.Error())
					mu.Unlock()
				}
				select {
				case <-stop:
				case <-pace.C:
				}
			}
		})
	}
	wg.Wait()
	return n.Load(), failures
}

// The control plane is killed and comes back while requests run: none fails.
func TestControlPlaneKilledUnderLoad(t *testing.T) {
	t.Parallel()
	s := own(t, nil)
	key := s.dev["SLUICE_API_KEY"]
	s.accepted(t, key)
	stop, done := make(chan struct{}), make(chan []string)
	go func() {
		_, failures := load(stop, 4, func() error { return s.answers(key, http.StatusOK) })
		done <- failures
	}()
	for range 3 {
		pid := s.child(t, "controlplane")
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the control plane is back", func() error {
			r, err := try(http.MethodGet, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/accounts", s.dev["SLUICE_ADMIN_KEY"], nil)
			if err == nil && r.StatusCode != 200 {
				err = fmt.Errorf("status %d", r.StatusCode)
			}
			return err
		})
		// Changes reach the edge again.
		fresh, _ := s.newKey(t, "streams:read")
		wantStatus(t, call(t, http.MethodGet, s.url("/v1/streams"), fresh, nil), http.StatusOK)
	}
	close(stop)
	if failures := <-done; len(failures) > 0 {
		t.Fatalf("%d requests failed, first: %s", len(failures), failures[0])
	}
}

// An edge that starts without a control plane is closed: 503 with Retry-After,
// never a pass and never a refused connection.
func TestEdgeWithoutControlPlane(t *testing.T) {
	t.Parallel()
	env := settings(t, tempDir(t))
	edge := run(t, env, "edge")
	t.Cleanup(func() {
		if err := edge.Stop(); err != nil {
			t.Error(err)
		}
	})
	base := "http://" + env["SLUICE_GATEWAY_ADDR"]
	eventually(t, "the edge answers", func() error {
		_, err := try(http.MethodGet, base+"/v1/streams", unknownKey, nil)
		return err
	})
	eventually(t, "Envoy runs", func() error {
		_, err := try(http.MethodGet, "http://"+env["SLUICE_ENVOY_ADMIN_ADDR"]+"/ready", "", nil)
		return err
	})
	for range 20 {
		for _, path := range []string{"/v1/streams", "/health", "/v1/nothing"} {
			r := call(t, http.MethodGet, base+path, unknownKey, nil)
			wantError(t, r, 503, "edge_not_ready")
			if number(t, r, "Retry-After") < 1 {
				t.Fatal(r.Header)
			}
		}
	}
}

// heap reads the filter's own gauge.
func (s *stack) heap(t testing.TB) (bytes int64) {
	t.Helper()
	eventually(t, "the filter shows its heap", func() error {
		r, err := try(http.MethodGet, s.dev["SLUICE_ENVOY_ADMIN_URLS"]+"/stats?filter=sluice_edge_heap_bytes", "", nil)
		if err != nil {
			return err
		}
		_, v, ok := strings.Cut(strings.TrimSpace(r.body), ": ")
		if bytes, err = strconv.ParseInt(v, 10, 64); err != nil || !ok || bytes == 0 {
			return fmt.Errorf("stats: %q", r.body)
		}
		return nil
	})
	return bytes
}
