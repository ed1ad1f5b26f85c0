package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
	"sluice.dev/sluice/envoy"
)

// findEnvoy is the pinned Envoy, by the variable that tests use.
func findEnvoy() (string, error) {
	program := os.Getenv("SLUICE_ENVOY")
	if program == "" {
		return "", errors.New("SLUICE_ENVOY is not set: run `make bench-imports`")
	}
	return program, nil
}

func marshal(v any) ([]byte, error) { return json.Marshal(v) }

// read has Envoy read everything that an edge would be served: it fails when Envoy
// refuses any of it.
func (r row) read(ctx context.Context, program string) error {
	dir, err := os.MkdirTemp("", "openapi-imports")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	limits, err := runtimeLimits()
	if err != nil {
		return err
	}
	b := &bootstrap.Bootstrap{StaticResources: &bootstrap.Bootstrap_StaticResources{}, LayeredRuntime: limits}
	listeners, err := r.set.Listeners(resources.Addresses{Gateway: "127.0.0.1:1"})
	if err != nil {
		return err
	}
	for name, l := range listeners {
		whole, err := r.inline(name, l)
		if err != nil {
			return err
		}
		b.StaticResources.Listeners = append(b.StaticResources.Listeners, whole)
	}
	for name, c := range r.set.Clusters {
		c = proto.CloneOf(c)
		if load, ok := r.set.Endpoints[name]; ok {
			c.ClusterDiscoveryType, c.EdsClusterConfig = &cluster.Cluster_Type{Type: cluster.Cluster_STATIC}, nil
			c.LoadAssignment = load
		}
		b.StaticResources.Clusters = append(b.StaticResources.Clusters, c)
	}
	text, err := protojson.Marshal(b)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "envoy.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	wasm, err := filepath.Abs(cmp.Or(os.Getenv("SLUICE_WASM_DIR"), ".sluice/wasm"))
	if err != nil {
		return err
	}
	if err := os.Symlink(wasm, filepath.Join(dir, "wasm")); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "--mode", "validate", "-c", file, "--log-level", "error")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("refused by Envoy: %w: %s", err, strings.TrimSpace(string(out[max(0, len(out)-500):])))
	}
	return nil
}

// runtimeLimits are those of an edge's own bootstrap.
func runtimeLimits() (*bootstrap.LayeredRuntime, error) {
	text, err := envoy.Render(envoy.Config{NodeID: "bench", GatewayAddr: "127.0.0.1:1", RuntimeAddr: "127.0.0.1:2", AdminAddr: "127.0.0.1:3", ControlPlane: []string{"127.0.0.1:4"}})
	if err != nil {
		return nil, err
	}
	values, err := document.Parse(text)
	if err != nil {
		return nil, err
	}
	part, err := json.Marshal(values["layered_runtime"])
	if err != nil {
		return nil, err
	}
	out := &bootstrap.LayeredRuntime{}
	return out, protojson.Unmarshal(part, out)
}

// inline puts the routes and filters of the set into a listener, as xDS would.
func (r row) inline(name string, l *listener.Listener) (*listener.Listener, error) {
	l = proto.CloneOf(l)
	f := l.FilterChains[0].Filters[0]
	m := &hcm.HttpConnectionManager{}
	if err := f.GetTypedConfig().UnmarshalTo(m); err != nil {
		return nil, err
	}
	m.RouteSpecifier = &hcm.HttpConnectionManager_RouteConfig{RouteConfig: r.set.Routes[name]}
	for _, h := range m.HttpFilters {
		if h.GetConfigDiscovery() != nil {
			h.ConfigType = &hcm.HttpFilter_TypedConfig{TypedConfig: r.set.Filters[h.Name].TypedConfig}
		}
	}
	packed, err := anypb.New(m)
	f.ConfigType = &listener.Filter_TypedConfig{TypedConfig: packed}
	return l, err
}
