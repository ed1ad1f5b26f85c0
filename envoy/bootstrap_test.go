package envoy

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func exampleConfig() Config {
	return Config{
		NodeID: "edge-1", Boot: "b1",
		GatewayAddr: "127.0.0.1:8080", RuntimeAddr: ":8090", AdminAddr: "127.0.0.1:9901",
		ControlPlane: []string{"127.0.0.1:18000", "[::1]:18001"}, FeedToken: `se"cret`,
	}
}

// secured is exampleConfig with every certificate.
func secured() Config {
	cfg := exampleConfig()
	cfg.Secrets, cfg.HTTP3 = "/state/secrets", true
	return cfg
}

func TestRenderGolden(t *testing.T) {
	t.Parallel()
	for file, cfg := range map[string]Config{"bootstrap.yaml": exampleConfig(), "bootstrap-tls.yaml": secured()} {
		isGolden(t, filepath.Join("testdata", file), cfg)
	}
}

func isGolden(t *testing.T, golden string, cfg Config) {
	t.Helper()
	got, err := Render(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Fatalf("bootstrap differs from %s (-want +got); rewrite with -update:\n%s", golden, diff)
	}
}

func TestRenderHoldsNoListener(t *testing.T) {
	t.Parallel()
	text, err := Render(exampleConfig())
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Static struct {
			Listeners []any `yaml:"listeners"`
		} `yaml:"static_resources"`
		Node struct {
			Metadata map[string]string `yaml:"metadata"`
		} `yaml:"node"`
	}
	if err := yaml.Unmarshal(text, &parsed); err != nil {
		t.Fatal(err)
	}
	if len(parsed.Static.Listeners) > 0 {
		t.Errorf("static listeners: %v", parsed.Static.Listeners)
	}
	want := map[string]string{"gateway_addr": "127.0.0.1:8080", "runtime_addr": ":8090", "boot": "b1"}
	if diff := cmp.Diff(want, parsed.Node.Metadata); diff != "" {
		t.Errorf("node metadata (-want +got):\n%s", diff)
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	for addrs, want := range map[string]string{
		"127.0.0.1:1":             "STATIC",
		"127.0.0.1:1 [::1]:2":     "STATIC",
		"control.internal:1":      "STRICT_DNS",
		"10.0.0.1:1 control:1000": "STRICT_DNS",
	} {
		if got, err := discovery(strings.Fields(addrs)); err != nil || got != want {
			t.Errorf("discovery(%s) = %s, %v; want %s", addrs, got, err, want)
		}
	}
}

func TestRenderNamesEveryBadField(t *testing.T) {
	t.Parallel()
	_, err := Render(Config{GatewayAddr: "8080", RuntimeAddr: "x:0", AdminAddr: "x:70000", ControlPlane: []string{"x:y"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{"NodeID", "GatewayAddr", "RuntimeAddr", "AdminAddr", "ControlPlane[0]"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("error does not name %s: %v", field, err)
		}
	}
	for secrets, field := range map[string]string{"relative": "Secrets", "": "HTTP3"} {
		bad := secured()
		bad.Secrets = secrets
		if _, err := Render(bad); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%q: %v", secrets, err)
		}
	}
	if _, err := Render(Config{NodeID: "e", GatewayAddr: ":1", RuntimeAddr: ":2", AdminAddr: ":3"}); err == nil {
		t.Error("a bootstrap without a control plane was rendered")
	}
}

func FuzzSplitAddr(f *testing.F) {
	for _, seed := range []string{"127.0.0.1:80", ":1", "[::1]:65535", "x", "x:-1", "a:b:c", "h:99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, addr string) {
		host, port, err := splitAddr(addr)
		if err == nil && (host == "" || port < 1 || port > 65535) {
			t.Fatalf("splitAddr(%q) = %q, %d without an error", addr, host, port)
		}
	})
}

// TestEnvoyAcceptsTheBootstrap lets Envoy itself judge it.
func TestEnvoyAcceptsTheBootstrap(t *testing.T) {
	t.Parallel()
	for name, controlPlane := range map[string]string{"by address": "127.0.0.1:1", "by name": "localhost:1"} {
		cfg := exampleConfig()
		cfg.ControlPlane = []string{controlPlane}
		text, err := Render(cfg)
		if err != nil {
			t.Fatal(err)
		}
		dir := wasmDir(t)
		file := filepath.Join(dir, "bootstrap.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(findEnvoy(t), "--mode", "validate", "-c", file)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// findEnvoy returns the Envoy under test; without one the test fails, for a
// bootstrap that no Envoy has read is worth nothing.
func findEnvoy(t *testing.T) string {
	t.Helper()
	path, err := Find(FindConfig{Binary: os.Getenv("SLUICE_ENVOY"), Path: os.Getenv("PATH"), Tools: filepath.Join("..", ".sluice", "tools")})
	if err != nil {
		t.Fatal(err)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// wasmDir returns a folder with a wasm/keysync.wasm that does nothing.
func wasmDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program := readHex(t, "idle.wasm.hex")
	if err := os.Mkdir(filepath.Join(dir, "wasm"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "wasm", "keysync.wasm"), program, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}
