package envoy

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/e2e/freeport"
)

// waitTimeout bounds waits on a foreign process; nothing depends on its length.
const waitTimeout = 60 * time.Second

// edgeBed is a running edge and what it needs.
type edgeBed struct {
	edge     *Edge
	cp       *fakeControlPlane
	stop     context.CancelFunc
	finished chan error
}

// newEdgeBed runs an edge under a control plane that publishes nothing yet.
func newEdgeBed(t *testing.T) *edgeBed {
	t.Helper()
	return newEdgeBedWith(t, func(*EdgeConfig) {})
}

// newEdgeBedWith is newEdgeBed with another configuration.
func newEdgeBedWith(t *testing.T, change func(*EdgeConfig)) *edgeBed {
	t.Helper()
	cp := newFakeControlPlane(t)
	dir := wasmDir(t)
	cfg := EdgeConfig{
		Bootstrap: Config{
			NodeID: "edge-under-test", GatewayAddr: mustFreeAddr(t), RuntimeAddr: mustFreeAddr(t),
			ControlPlane: []string{cp.addr},
		},
		Binary: findEnvoy(t), Dir: dir, Concurrency: 1, Output: testWriter{t},
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil)), DocsBase: "http://docs.test",
	}
	change(&cfg)
	edge, err := NewEdge(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	b := &edgeBed{edge: edge, cp: cp, stop: stop, finished: make(chan error, 1)}
	go func() { b.finished <- edge.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-b.finished; err != nil {
			t.Errorf("an edge that was asked to end: %v", err)
		}
	})
	return b
}

// status asks the gateway once over a connection of its own.
func (b *edgeBed) status(t *testing.T) int {
	t.Helper()
	resp, err := fetch("http://" + b.edge.cfg.Bootstrap.GatewayAddr + "/v1/streams")
	if err != nil {
		t.Fatalf("a client must never meet a closed port: %v", err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func fetch(url string) (*http.Response, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: waitTimeout}
	return client.Get(url)
}

// await polls until the gateway answers want.
func (b *edgeBed) await(t *testing.T, want int) {
	t.Helper()
	deadline := time.Now().Add(waitTimeout)
	for got := b.status(t); got != want; got = b.status(t) {
		if time.Now().After(deadline) {
			t.Fatalf("status %d, want %d", got, want)
		}
	}
}

// awaitReturn polls after a death until Envoy answers again. Requests that were
// with the dead Envoy fail; an answer in between can only be the standby listener's.
func (b *edgeBed) awaitReturn(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(waitTimeout); time.Now().Before(deadline); {
		resp, err := fetch("http://" + b.edge.cfg.Bootstrap.GatewayAddr + "/v1/streams")
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusTeapot:
			return
		case http.StatusServiceUnavailable:
		default:
			t.Fatalf("status %d while Envoy is restarted", resp.StatusCode)
		}
	}
	t.Fatal("Envoy did not come back")
}

func TestAnEdgeWithoutConfigurationAnswers503(t *testing.T) {
	t.Parallel()
	b := newEdgeBed(t)
	resp, err := fetch("http://" + b.edge.cfg.Bootstrap.RuntimeAddr + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "2" {
		t.Errorf("status %d, Retry-After %q; want 503 and 2", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	if !strings.Contains(string(body), `"code":"edge_not_ready"`) {
		t.Errorf("body %s", body)
	}
}

func TestEnvoyTakesOverAndComesBackAfterItsDeath(t *testing.T) {
	t.Parallel()
	b := newEdgeBed(t)
	b.cp.publish(t, b.edge.cfg.Bootstrap)
	<-b.edge.Ready()
	if !b.edge.Serving() {
		t.Error("ready, yet it does not serve")
	}
	b.await(t, http.StatusTeapot)
	first := b.edge.proc.PID()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.awaitReturn(t)
	b.stop()
	if err := <-b.finished; err != nil {
		t.Fatalf("an edge that was asked to end: %v", err)
	}
	if b.edge.proc.PID() == first {
		t.Fatal("Envoy was not restarted")
	}
	if conn, err := net.Dial("tcp", b.edge.cfg.Bootstrap.GatewayAddr); err == nil {
		_ = conn.Close()
		t.Fatal("somebody still listens after the end")
	}
	b.finished <- nil // for the clean-up
}

func TestTheControlPlaneLearnsTheNode(t *testing.T) {
	t.Parallel()
	b := newEdgeBed(t)
	node := <-b.cp.nodes
	meta := map[string]string{}
	for key, value := range node.GetMetadata().GetFields() {
		meta[key] = value.GetStringValue()
	}
	if len(meta["boot"]) < 16 {
		t.Errorf("boot %q is not drawn at random", meta["boot"])
	}
	delete(meta, "boot")
	cfg := b.edge.cfg.Bootstrap
	want := map[string]string{"gateway_addr": cfg.GatewayAddr, "runtime_addr": cfg.RuntimeAddr}
	if diff := cmp.Diff(want, meta); diff != "" || node.GetId() != cfg.NodeID || node.GetCluster() != NodeCluster {
		t.Errorf("node %s of %s, metadata (-want +got):\n%s", node.GetId(), node.GetCluster(), diff)
	}
}

func TestAPortInUseStopsBeforeTheStart(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = NewEdge(EdgeConfig{
		Bootstrap: Config{
			NodeID: "e", GatewayAddr: mustFreeAddr(t), RuntimeAddr: taken.Addr().String(), ControlPlane: []string{"127.0.0.1:1"},
		},
		Binary: findEnvoy(t), Dir: wasmDir(t),
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{taken.Addr().String(), "SLUICE_RUNTIME_ADDR", "process"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %q: %v", part, err)
		}
	}
}

func TestNewEdgeNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	base := Config{NodeID: "e", GatewayAddr: mustFreeAddr(t), RuntimeAddr: mustFreeAddr(t), ControlPlane: []string{"127.0.0.1:1"}}
	for want, cfg := range map[string]EdgeConfig{
		"SLUICE_ENVOY":            {Bootstrap: base, Binary: "/no/such/envoy", Dir: wasmDir(t)},
		"make filters":            {Bootstrap: base, Binary: findEnvoy(t), Dir: t.TempDir()},
		"ControlPlane":            {Bootstrap: Config{NodeID: "e", GatewayAddr: ":1", RuntimeAddr: ":2"}, Binary: findEnvoy(t), Dir: wasmDir(t)},
		"GatewayAddr: \"nonsense": {Bootstrap: Config{NodeID: "e", GatewayAddr: "nonsense", RuntimeAddr: ":2", ControlPlane: base.ControlPlane}, Binary: findEnvoy(t), Dir: wasmDir(t)},
	} {
		if _, err := NewEdge(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that names %s", err, want)
		}
	}
}

func mustFreeAddr(t *testing.T) string {
	t.Helper()
	addrs, err := freeport.Addrs(1)
	if err != nil {
		t.Fatal(err)
	}
	return addrs[0]
}

// testWriter sends log lines to the test's log.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// Why a filter has panicked is printed as information: it is in the log at any level.
func TestWhatFiltersPrintIsLogged(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]string{"error": "wasm:info", "warning": "wasm:info", "info": "wasm:info", "debug": "wasm:debug", "trace": "wasm:trace"} {
		args := (&Edge{cfg: EdgeConfig{LogLevel: level}}).args("bootstrap.yaml", time.Minute)
		if i := slices.Index(args, "--component-log-level"); i < 0 || args[i+1] != want {
			t.Errorf("%s: %v, want %s", level, args, want)
		}
	}
}
