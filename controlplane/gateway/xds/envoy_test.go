package xds

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// bootstrap is the least that an Envoy needs to take all else from the server.
const bootstrap = `
node: {id: "edge-%s", cluster: sluice-edge, metadata: {gateway_addr: "127.0.0.1:0", runtime_addr: "127.0.0.1:0"%s}}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  ads_config: {api_type: DELTA_GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: sluice_controlplane}}]}
  lds_config: {ads: {}, resource_api_version: V3}
  cds_config: {ads: {}, resource_api_version: V3}
static_resources:
  clusters:
  - name: sluice_controlplane
    connect_timeout: 1s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {connection_keepalive: {interval: 1s, timeout: 20s}}}
    load_assignment: {cluster_name: sluice_controlplane, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]}
`

// startEnvoy runs an Envoy that takes its configuration from the server at addr
// and returns the URL of its admin endpoint, and its process.
func startEnvoy(t testing.TB, addr string) (admin string, pid int) {
	t.Helper()
	return startEnvoyWith(t, addr, "")
}

// startEnvoyWith is startEnvoy with more of the node's metadata.
func startEnvoyWith(t testing.TB, addr, metadata string) (admin string, pid int) {
	t.Helper()
	dir := t.TempDir()
	host, port, _ := strings.Cut(addr, ":")
	file, adminFile := filepath.Join(dir, "envoy.yaml"), filepath.Join(dir, "admin")
	if err := os.WriteFile(file, fmt.Appendf(nil, bootstrap, filepath.Base(dir), metadata, host, port), 0o600); err != nil {
		t.Fatal(err)
	}
	wasm := os.Getenv("SLUICE_WASM_DIR")
	if wasm == "" {
		wasm = "../../../.sluice/wasm"
	}
	wasm, err := filepath.Abs(wasm)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(wasm, filepath.Join(dir, "wasm")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Getenv("SLUICE_ENVOY"), "-c", file, "--admin-address-path", adminFile, "--concurrency", "1", "--log-level", "error", "--disable-hot-restart", "--ignore-unknown-dynamic-fields")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run `make test`, which sets SLUICE_ENVOY", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	admin = poll(t, func() string {
		b, _ := os.ReadFile(adminFile)
		if len(b) == 0 {
			return ""
		}
		return "http://" + string(b)
	})
	return admin, cmd.Process.Pid
}

// poll returns what f does once it is not empty: Envoy gives no signal.
func poll(t testing.TB, f func() string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if v := f(); v != "" {
			return v
		}
		select {
		case <-ctx.Done():
			t.Fatal("Envoy does not get there")
		case <-tick.C:
		}
	}
}

// gateway returns the address of the gateway's listener, "" before it is open:
// Envoy lists a listener a moment before it accepts.
func gateway(admin string) string {
	res, err := http.Get(admin + "/listeners")
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		addr, ok := strings.CutPrefix(lines.Text(), "gateway::")
		if conn, err := net.Dial("tcp", addr); ok && err == nil {
			conn.Close()
			return "http://" + addr
		}
	}
	return ""
}

// variant is the default document with /docs served by a product, and under a
// name, that belong to this variant alone.
func variant(t *testing.T, n int, upstream string) config.Document {
	d := document(t)
	name := fmt.Sprintf("docs-%d", n)
	d.AnonymousPerMinute = 1 << 20
	d.Products = append(d.Products, config.Product{Name: name, Upstreams: []config.Upstream{{Address: upstream}}})
	i := slices.IndexFunc(d.Routes, func(r config.Route) bool { return r.Name == "docs" })
	d.Routes[i].Name, d.Routes[i].Product = name, name
	return d
}

// A real edge takes one change after the other, each of which replaces a route,
// its policy and its product, while requests go through it: none fails.
func TestNoRequestFailsWhileEnvoyTakesChanges(t *testing.T) {
	t.Parallel()
	product := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "docs") }))
	t.Cleanup(product.Close)
	upstream := product.Listener.Addr().String()
	s, addr := newServer(t, Config{AckTimeout: 10 * time.Second})
	publish(t, s, 1, variant(t, 1, upstream))
	admin, _ := startEnvoy(t, addr)
	url := poll(t, func() string { return gateway(admin) })

	stop, failures, answered := make(chan struct{}), make(chan string, 1), make(chan int, 1)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				answered <- n
				return
			default:
			}
			if got := get(url + "/docs/errors"); got != "200 docs" {
				select {
				case failures <- got:
				default:
				}
			}
		}
	}()
	const changes = 30
	for n := 2; n <= changes; n++ {
		publish(t, s, int64(n), variant(t, n, upstream))
		if e := s.Edges()[0]; !e.Current {
			t.Fatalf("after change %d: %+v", n, e)
		}
	}
	close(stop)
	t.Logf("%d requests during %d changes", <-answered, changes-1)
	select {
	case got := <-failures:
		t.Error("a request failed: " + got)
	default:
	}
}

func get(url string) string {
	res, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", res.StatusCode, b)
}
