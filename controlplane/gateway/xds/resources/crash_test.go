package resources

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// victim is the product behind an Envoy whose filter crashes.
type victim struct {
	addr string // of the Envoy
	home string // its folder, where the address of its admin interface is
	// hits counts the requests that reached the product, but for Envoy's health checks.
	hits atomic.Int64
	// arrived tells of each request under /held/; it is answered when release is
	// closed.
	arrived, release chan struct{}
	once             sync.Once
}

// letGo has the product answer what it holds.
func (v *victim) letGo() { v.once.Do(func() { close(v.release) }) }

func (v *victim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.UserAgent() != "Envoy/HC" {
		v.hits.Add(1)
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/held/answer":
		v.arrived <- struct{}{}
		<-v.release
	case "/held/body":
		fmt.Fprint(w, "{")
		_ = http.NewResponseController(w).Flush()
		v.arrived <- struct{}{}
		<-v.release
		fmt.Fprint(w, "}")
		return
	case "/held/upload":
		v.arrived <- struct{}{}
		<-v.release
		if b, err := io.ReadAll(r.Body); err != nil || len(b) != 100 {
			w.WriteHeader(http.StatusBadRequest)
		}
	}
	fmt.Fprint(w, `{}`)
}

// crashing is an Envoy whose program of a filter traps on a request with 40
// headers.
func crashing(t *testing.T, program string, more ...config.Route) *victim {
	t.Helper()
	return replaced(t, program, trapProgram(t), 2, more...)
}

// replaced is an Envoy with another module as a program of a filter, configured in
// all else as ours is.
func replaced(t *testing.T, program string, module []byte, workers int, more ...config.Route) *victim {
	t.Helper()
	by := filepath.Join(t.TempDir(), "other.wasm")
	if err := os.WriteFile(by, module, 0o644); err != nil {
		t.Fatal(err)
	}
	v := &victim{arrived: make(chan struct{}, 100), release: make(chan struct{})}
	product := httptest.NewServer(v)
	t.Cleanup(product.Close)
	t.Cleanup(v.letGo) // else that waits for ever
	d := defaults(t)
	d.Routes = append(d.Routes, more...)
	s := build(t, d, Options{Addresses: map[string][]string{
		"api": {product.Listener.Addr().String()}, "media": {product.Listener.Addr().String()}, "runtime": {product.Listener.Addr().String()},
	}})
	file := static(t, s, Addresses{Gateway: "127.0.0.1:0"})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	swapped := strings.ReplaceAll(string(text), `wasm/`+program+`.wasm`, by)
	if swapped == string(text) {
		t.Fatalf("the configuration does not name %s", program)
	}
	if err := os.WriteFile(file, []byte(swapped), 0o600); err != nil {
		t.Fatal(err)
	}
	v.addr, v.home = running(t, file, workers), filepath.Dir(file)
	return v
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
	v := crashing(t, "edge")
	for round := range 3 {
		recovered(t, v.addr, "/v1/health")
		before := v.hits.Load()
		res, body := exchange(t, v.addr, get("/v1/health", 60))
		if res.StatusCode != 503 || body.Error.Code != "service_unavailable" {
			t.Errorf("round %d: %d %+v", round, res.StatusCode, body)
		}
		checkHeaders(t, res, body.Error.RequestID)
		if v.hits.Load() != before {
			t.Errorf("round %d: the request passed", round)
		}
	}
	recovered(t, v.addr, "/v1/health")
	if n := v.reloads(t, "edge"); n > 3 {
		t.Errorf("%d new VMs after three crashes", n)
	}
	if n := v.stat(t, "wasm.chatcaps.vm_reload_success"); n != 0 {
		t.Errorf("%d new VMs of a filter that did not crash", n)
	}
}

// reloads makes requests until a VM of the program has been replaced, which is when
// the first one after the backoff reaches its worker, and returns how many have.
func (v *victim) reloads(t *testing.T, program string) int {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond) // Envoy gives no signal of its own
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); ; <-tick.C {
		if n := v.stat(t, "wasm."+program+".vm_reload_success"); n > 0 {
			return n
		}
		if time.Now().After(end) {
			t.Fatalf("no VM of %s has been replaced", program)
		}
		exchange(t, v.addr, get("/v1/health", 0))
	}
}

// stat is a number that Envoy counts.
func (v *victim) stat(t *testing.T, name string) (n int) {
	t.Helper()
	admin, err := os.ReadFile(filepath.Join(v.home, "admin"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get("http://" + string(admin) + "/stats?filter=^" + name + "$")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := fmt.Fscanf(res.Body, name+": %d", &n); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// held is a request that the product has begun to answer, and waits.
type held struct {
	what string
	net.Conn
}

// hold sends requests that the product holds, each on a connection of its own:
// some wait for an answer, some are in the middle of one, some of an upload.
func (v *victim) hold(t *testing.T, each int) (all []held) {
	t.Helper()
	for what, text := range map[string]string{
		"answer": "GET /held/answer HTTP/1.1\r\nHost: a\r\n\r\n", "body": "GET /held/body HTTP/1.1\r\nHost: a\r\n\r\n",
		"upload": "POST /held/upload HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("a", 50),
	} {
		for range each {
			conn, err := net.Dial("tcp", v.addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(conn, text)
			all = append(all, held{what, conn})
			<-v.arrived
		}
	}
	return all
}

// finish sends what is left of a request and reads its answer; whole is false
// when it breaks off.
func (h held) finish(t *testing.T) (res *http.Response, body string, whole bool) {
	t.Helper()
	if h.what == "upload" {
		fmt.Fprint(h.Conn, strings.Repeat("a", 50))
	}
	res, err := http.ReadResponse(bufio.NewReader(h.Conn), nil)
	if err != nil {
		t.Fatalf("%s: %v", h.what, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err == nil
}

// Requests under way on the worker whose VM has crashed end with it, since Envoy
// takes their filter away: with 503 if nothing was answered yet, else cut off,
// never as if they were whole. Those on other workers do not notice.
func TestCrashAmongRequestsUnderWay(t *testing.T) {
	t.Parallel()
	v := crashing(t, "edge", config.Route{Name: "held", Path: "/held/{what}", Auth: []string{"none"}, Product: "api"})
	recovered(t, v.addr, "/v1/health")
	all := v.hold(t, 8)
	before := v.hits.Load()
	if res, _ := exchange(t, v.addr, get("/v1/health", 60)); res.StatusCode != 503 || v.hits.Load() != before {
		t.Errorf("the crash: %d, %d requests passed", res.StatusCode, v.hits.Load()-before)
	}
	v.letGo()
	unharmed, ended := 0, 0
	for _, h := range all {
		switch res, body, whole := h.finish(t); {
		case whole && res.StatusCode == 200 && body == "{}":
			unharmed++
		case whole && res.StatusCode == 503 && h.what != "body":
			ended++
			var e envelope
			if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error.Code != "service_unavailable" {
				t.Errorf("%s: %s", h.what, body)
			}
			checkHeaders(t, res, e.Error.RequestID)
		case !whole && h.what == "body":
			ended++
		default:
			t.Errorf("%s: %d %q, whole: %v", h.what, res.StatusCode, body, whole)
		}
	}
	t.Logf("of %d requests under way on two workers %d went on", len(all), unharmed)
	if unharmed == 0 || ended == 0 {
		t.Errorf("%d requests went on, %d ended", unharmed, ended)
	}
	recovered(t, v.addr, "/v1/health")
}

// A crash of the chat filter takes nothing else down: requests on other routes go
// on while it is backing off.
func TestCrashOfChatCapsLeavesTheEdgeAlone(t *testing.T) {
	t.Parallel()
	v := crashing(t, "chatcaps", config.Route{Name: "capped", Path: "/capped", Auth: []string{"none"}, Product: "api", ChatCaps: true})
	recovered(t, v.addr, "/capped")
	for range 5 {
		before := v.hits.Load()
		if res, _ := exchange(t, v.addr, get("/capped", 60)); res.StatusCode != 503 || v.hits.Load() != before {
			t.Errorf("the crash: %d", res.StatusCode)
		}
		for range 20 {
			if res, _ := exchange(t, v.addr, get("/v1/health", 60)); res.StatusCode != 200 {
				t.Fatalf("beside the crash: %d", res.StatusCode)
			}
		}
	}
	recovered(t, v.addr, "/capped")
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
