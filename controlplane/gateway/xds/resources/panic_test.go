package resources

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/dev/toolchain"
)

// panicProgram is filters/host/panicguard/testdata/crash, built as the filters are.
var panicProgram = sync.OnceValues(func() ([]byte, error) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		return nil, err
	}
	cfg := toolchain.Config{Root: root, Path: os.Getenv("PATH"), Progress: os.Stderr}
	ctx := context.Background() // shared by the tests
	tc, err := toolchain.ProvisionTinyGo(ctx, cfg)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sluice-crash-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "crash.wasm")
	if err := toolchain.Compile(ctx, cfg, tc, "filters/host/panicguard/testdata/crash", out, ""); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
})

// panicking is an Envoy with one worker whose edge filter panics where a request's X-Crash says.
func panicking(t *testing.T) *victim {
	t.Helper()
	program, err := panicProgram()
	if err != nil {
		t.Fatal(err)
	}
	v := replaced(t, "edge", program, 1, config.Route{Name: "held", Path: "/held/{what}", Auth: []string{"none"}, Product: "api"})
	recovered(t, v.addr, "/v1/health")
	return v
}

// crash sends a request that crashes as told. whole is false when the answer
// breaks off, or there is none.
func (v *victim) crash(t *testing.T, crash string) (res *http.Response, body string, whole bool) {
	t.Helper()
	conn, err := net.Dial("tcp", v.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /held/nothing HTTP/1.1\r\nHost: a\r\nX-Crash: %s\r\nContent-Length: 1\r\n\r\na", crash)
	if res, err = http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		return nil, "", false
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err == nil
}

var waysToPanic = []string{"panic", "nil", "map", "index", "divide", "type"}

// A filter that panics, in whatever way and callback, costs the request of that
// callback: all others under way, on the same worker too, go on to their end.
func TestPanicCostsOneRequest(t *testing.T) {
	t.Parallel()
	v := panicking(t)
	all := v.hold(t, 4)
	crashes := 0
	for _, how := range waysToPanic {
		before := v.hits.Load()
		res, body := exchange(t, v.addr, "GET /v1/health HTTP/1.1\r\nHost: a\r\nX-Crash: request "+how+"\r\n\r\n")
		if res.StatusCode != 503 || body.Error.Code != "service_unavailable" {
			t.Errorf("%s: %d %+v", how, res.StatusCode, body)
		}
		checkHeaders(t, res, body.Error.RequestID)
		if v.hits.Load() != before {
			t.Errorf("%s: the request passed", how)
		}
		v.logged(t, "crashed in request "+body.Error.RequestID)
		recovered(t, v.addr, "/v1/health")
		crashes++
	}
	v.logged(t, "panic: as it was told")
	for _, c := range []struct {
		where  string
		status int // 0: broken off
	}{{"upload", 503}, {"answer", 503}, {"own-answer", 503}, {"download", 0}, {"done", 200}, {"tick", 200}} {
		for _, how := range waysToPanic {
			switch res, body, whole := v.crash(t, c.where+" "+how); {
			case c.status == 0 && whole:
				t.Errorf("%s %s: %d %q is whole", c.where, how, res.StatusCode, body)
			case c.status > 0 && (!whole || res.StatusCode != c.status):
				t.Errorf("%s %s: %v %q, whole: %v", c.where, how, res, body, whole)
			}
			crashes++
			recovered(t, v.addr, "/v1/health")
		}
	}
	v.counts(t, "wasmcustom.sluice_crashes_total", crashes)
	v.letGo()
	for _, h := range all {
		if res, body, whole := h.finish(t); !whole || res.StatusCode != 200 || body != "{}" {
			t.Errorf("under way on the same worker, %s: %d %q, whole: %v", h.what, res.StatusCode, body, whole)
		}
	}
	if n := v.stat(t, "wasm.edge.vm_reload_success"); n != 0 {
		t.Errorf("%d VMs were replaced", n)
	}
}

// logged waits until Envoy's log has a line with text.
func (v *victim) logged(t *testing.T, text string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond) // a file gives no signal
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); ; <-tick.C {
		log, err := os.ReadFile(filepath.Join(v.home, "log"))
		if err != nil || time.Now().After(end) {
			t.Fatalf("the log has no %q: %v", text, err)
		}
		if strings.Contains(string(log), text) {
			return
		}
	}
}

// counts waits until Envoy has counted n: a tick crashes later, and Envoy adds
// up what its workers count from time to time.
func (v *victim) counts(t *testing.T, name string, n int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond) // Envoy gives no signal of its own
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); v.stat(t, name) != n; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s is %d, want %d", name, v.stat(t, name), n)
		}
	}
}

// Crashes leave nothing behind: not on the stack, of which 64 KiB would be full
// after a few hundred, nor for the collector to trip over.
func TestPanicsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	v := panicking(t)
	for n := range 1000 {
		where := []string{"request ", "answer "}[n%2]
		if res, body, whole := v.crash(t, where+waysToPanic[n%len(waysToPanic)]); !whole || res.StatusCode != 503 {
			t.Fatalf("crash %d: %v %q", n, res, body)
		}
		if res, body, whole := v.crash(t, "nowhere"); !whole || res.StatusCode != 200 || body != "{}" {
			t.Fatalf("after crash %d: %v %q", n, res, body)
		}
	}
	if n := v.stat(t, "wasm.edge.vm_reload_success"); n != 0 {
		t.Errorf("%d VMs were replaced", n)
	}
}

// However a request ends, the VM forgets it: whole, with its client gone, with a crash in
// its end, or answered by Envoy before any filter saw it.
func TestRequestsAreForgotten(t *testing.T) {
	t.Parallel()
	v := panicking(t)
	one := func() {
		for _, where := range []string{"nowhere", "done nil", "nowhere", "download nil"} {
			v.crash(t, where)
		}
		if res, _ := exchange(t, v.addr, get("/held/nothing", 200)); res.StatusCode != 431 {
			t.Fatalf("200 headers: %d", res.StatusCode)
		}
		conn, err := net.Dial("tcp", v.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "POST /held/nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // until what is made once is there
		one()
	}
	tick := time.NewTicker(10 * time.Millisecond) // Envoy gives no signal of its own
	defer tick.Stop()
	before, after := v.stat(t, "wasmcustom.sluice_heap"), 0
	for range 300 {
		one()
	}
	const room = 32 << 10 // a tenth of what 1,800 requests would leave
	for end := time.Now().Add(20 * time.Second); ; <-tick.C {
		if after = v.stat(t, "wasmcustom.sluice_heap"); after <= before+room {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the heap grew from %d to %d bytes", before, after)
		}
	}
}

// A VM in which no request ends well any more is replaced, wherever they crash.
func TestPanicsInARowReplaceTheVM(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"request", "upload", "answer"} {
		v := panicking(t)
		for n := range 9 {
			if res, _, _ := v.crash(t, where+" nil"); res == nil || res.StatusCode != 503 {
				t.Fatalf("%s, crash %d: %v", where, n, res)
			}
		}
		if n := v.reloads(t, "edge"); n != 1 {
			t.Errorf("%s: %d VMs were replaced, want 1", where, n)
		}
	}
}

// A stack that is used up is no panic, and memory is never given back: both end
// the VM.
func TestWhatEndsTheVM(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stack", "memory"} {
		v := panicking(t)
		before := v.hits.Load()
		if res, _, _ := v.crash(t, "request "+how); res == nil || res.StatusCode != 503 || v.hits.Load() != before {
			t.Errorf("%s: %v, %d requests passed", how, res, v.hits.Load()-before)
		}
		if n := v.reloads(t, "edge"); n != 1 {
			t.Errorf("%s: %d VMs were replaced, want 1", how, n)
		}
	}
}
