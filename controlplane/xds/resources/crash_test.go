package resources

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/config"
)

// crashing is the path of an Envoy whose program of a filter traps on a request
// with 40 headers, configured in all else as ours is; hits counts what reached
// the product behind.
func crashing(t *testing.T, program string, more ...config.Route) (addr string, hits *atomic.Int64) {
	t.Helper()
	hits = &atomic.Int64{}
	product := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{}`)
	}))
	t.Cleanup(product.Close)
	d := defaults(t)
	d.Routes = append(d.Routes, more...)
	s := build(t, d, Options{Addresses: map[string][]string{
		"api": {product.Listener.Addr().String()}, "media": {product.Listener.Addr().String()}, "runtime": {product.Listener.Addr().String()},
	}})
	file := static(t, s, Addresses{Gateway: "127.0.0.1:0"})
	trap := filepath.Join(t.TempDir(), "trap.wasm")
	if err := os.WriteFile(trap, trapProgram(t), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	swapped := strings.ReplaceAll(string(text), `wasm/`+program+`.wasm`, trap)
	if swapped == string(text) {
		t.Fatalf("the configuration does not name %s", program)
	}
	if err := os.WriteFile(file, []byte(swapped), 0o600); err != nil {
		t.Fatal(err)
	}
	return running(t, file), hits
}

func get(path string, headers int) string {
	return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X-Noise: 1\r\n", headers) + "\r\n"
}

// recovered waits until a request is answered 200, as it is after a backoff of
// at most a second.
func recovered(t *testing.T, addr, path string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond) // Envoy gives no signal of its own
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); ; <-tick.C {
		res, _ := exchange(t, addr, get(path, 0))
		if res.StatusCode == 200 {
			return
		}
		if res.StatusCode != 503 || time.Now().After(end) {
			t.Fatalf("after a crash: %d", res.StatusCode)
		}
	}
}

// A request that crashes the filter is answered 503 and reaches nobody; a new VM
// serves the next ones, also when they crash it again and again.
func TestCrashCostsOneRequest(t *testing.T) {
	t.Parallel()
	addr, hits := crashing(t, "edge")
	for round := range 3 {
		recovered(t, addr, "/v1/health")
		before := hits.Load()
		res, body := exchange(t, addr, get("/v1/health", 60))
		if res.StatusCode != 503 || body.Error.Code != "service_unavailable" {
			t.Errorf("round %d: %d %+v", round, res.StatusCode, body)
		}
		checkHeaders(t, res, body.Error.RequestID)
		if hits.Load() != before {
			t.Errorf("round %d: the request passed", round)
		}
	}
	recovered(t, addr, "/v1/health")
}

// A crash of the chat filter takes nothing else down: requests on other routes go
// on while it is backing off.
func TestCrashOfChatCapsLeavesTheEdgeAlone(t *testing.T) {
	t.Parallel()
	addr, hits := crashing(t, "chatcaps", config.Route{Name: "capped", Path: "/capped", Auth: []string{"none"}, Product: "api", ChatCaps: true})
	recovered(t, addr, "/capped")
	for range 5 {
		before := hits.Load()
		if res, _ := exchange(t, addr, get("/capped", 60)); res.StatusCode != 503 || hits.Load() != before {
			t.Errorf("the crash: %d", res.StatusCode)
		}
		for range 20 {
			if res, _ := exchange(t, addr, get("/v1/health", 60)); res.StatusCode != 200 {
				t.Fatalf("beside the crash: %d", res.StatusCode)
			}
		}
	}
	recovered(t, addr, "/capped")
}

// trapProgram is testdata/trap.wat as WASM.
func trapProgram(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "trap.wasm.hex"))
	if err != nil {
		t.Fatal(err)
	}
	program, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return program
}
