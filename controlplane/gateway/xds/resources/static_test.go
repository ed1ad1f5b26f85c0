package resources

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// static writes a bootstrap that holds everything of s in itself, for an Envoy
// without a control plane, into a folder that also has the filters.
func static(t *testing.T, s *Set, a Addresses) string {
	t.Helper()
	local, err := socketAddress("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bootstrap.Bootstrap{
		Admin:           &bootstrap.Admin{Address: local},
		StaticResources: &bootstrap.Bootstrap_StaticResources{},
	}
	listeners, err := s.Listeners(a)
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range listeners {
		b.StaticResources.Listeners = append(b.StaticResources.Listeners, inline(t, s, name, l))
	}
	for name, c := range s.Clusters {
		c = withStaticSecrets(t, proto.CloneOf(c))
		if load, ok := s.Endpoints[name]; ok {
			c.ClusterDiscoveryType, c.EdsClusterConfig = &cluster.Cluster_Type{Type: cluster.Cluster_STATIC}, nil
			c.LoadAssignment = load
		}
		b.StaticResources.Clusters = append(b.StaticResources.Clusters, c)
	}
	for _, secret := range s.Secrets {
		b.StaticResources.Secrets = append(b.StaticResources.Secrets, secret)
	}
	dir := t.TempDir()
	js, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "envoy.json")
	if err := os.WriteFile(file, js, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(wasmDir(t), filepath.Join(dir, "wasm")); err != nil {
		t.Fatal(err)
	}
	return file
}

// withStaticSecrets has c take its secrets from the bootstrap.
func withStaticSecrets(t *testing.T, c *cluster.Cluster) *cluster.Cluster {
	t.Helper()
	if c.TransportSocket == nil {
		return c
	}
	up := &tlsv3.UpstreamTlsContext{}
	if err := c.TransportSocket.GetTypedConfig().UnmarshalTo(up); err != nil {
		t.Fatal(err)
	}
	own := up.CommonTlsContext.TlsCertificateSdsSecretConfigs
	if ca := up.CommonTlsContext.GetCombinedValidationContext(); ca != nil {
		own = append(own[:len(own):len(own)], ca.ValidationContextSdsSecretConfig)
	}
	for _, secret := range own {
		secret.SdsConfig = nil
	}
	c.TransportSocket.ConfigType = &core.TransportSocket_TypedConfig{TypedConfig: pack(up)}
	return c
}

// inline puts the routes and filters of s into l.
func inline(t *testing.T, s *Set, name string, l *listener.Listener) *listener.Listener {
	t.Helper()
	l = proto.CloneOf(l)
	f := l.FilterChains[0].Filters[0]
	m := &hcm.HttpConnectionManager{}
	if err := f.GetTypedConfig().UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	m.RouteSpecifier = &hcm.HttpConnectionManager_RouteConfig{RouteConfig: s.Routes[name]}
	for _, h := range m.HttpFilters {
		if h.GetConfigDiscovery() != nil {
			h.ConfigType = &hcm.HttpFilter_TypedConfig{TypedConfig: s.Filters[h.Name].TypedConfig}
		}
	}
	f.ConfigType = &listener.Filter_TypedConfig{TypedConfig: pack(m)}
	return l
}

func wasmDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SLUICE_WASM_DIR")
	if dir == "" {
		dir = "../../../../.sluice/wasm"
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "edge.wasm")); err != nil {
		t.Fatalf("%v: run `make filters`", err)
	}
	return dir
}

// envoy runs an Envoy with the given arguments in the folder of config until
// it ends or the test does, and returns what it wrote.
func envoy(t *testing.T, config string, args ...string) (string, error) {
	t.Helper()
	binary := os.Getenv("SLUICE_ENVOY")
	if binary == "" {
		t.Fatal("SLUICE_ENVOY is not set: run `make test`")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{"--config-path", config, "--log-level", "warning", "--disable-hot-restart"}, args...)...)
	cmd.Dir = filepath.Dir(config)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
