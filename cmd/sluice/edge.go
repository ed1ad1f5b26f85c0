package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/envoy"
)

// runEdge supervises one Envoy.
func runEdge(ctx context.Context, env environment) error {
	binary, err := env.envoy()
	if err != nil {
		return err
	}
	dir, err := env.wasmParent()
	if err != nil {
		return err
	}
	concurrency, err := env.number("SLUICE_EDGE_CONCURRENCY", 0, 256)
	if err != nil {
		return err
	}
	name := env.get("SLUICE_EDGE_NAME")
	edge, err := envoy.NewEdge(envoy.EdgeConfig{
		Bootstrap: envoy.Config{
			NodeID:       name,
			GatewayAddr:  env.get("SLUICE_GATEWAY_ADDR"),
			RuntimeAddr:  env.get("SLUICE_RUNTIME_ADDR"),
			AdminAddr:    env.get("SLUICE_ENVOY_ADMIN_ADDR"),
			ControlPlane: strings.Split(env.get("SLUICE_XDS_ADDR"), ","),
			FeedToken:    env.get("SLUICE_FEED_TOKEN"),
		},
		Binary:      binary,
		Dir:         dir,
		StateDir:    filepath.Join(env.get("SLUICE_STATE_DIR"), "edges", name),
		Concurrency: concurrency,
		Output:      os.Stderr,
		DocsBase:    env.publicURL(),
	})
	if err != nil {
		return err
	}
	return edge.Run(ctx)
}

// envoy finds Envoy's binary.
func (e environment) envoy() (string, error) {
	return envoy.Find(envoy.FindConfig{
		Binary: e.get("SLUICE_ENVOY"),
		Path:   os.Getenv("PATH"),
		Tools:  filepath.Join(e.get("SLUICE_STATE_DIR"), "tools"),
	})
}

// wasmParent is the folder that holds wasm/: Envoy runs there, so that the
// control plane can name filters by a path that is the same on every edge.
func (e environment) wasmParent() (string, error) {
	dir := e.get("SLUICE_WASM_DIR")
	if dir == "" {
		dir = filepath.Join(e.get("SLUICE_STATE_DIR"), "wasm")
	}
	if filepath.Base(dir) != "wasm" {
		return "", fmt.Errorf("SLUICE_WASM_DIR is %s: the folder must be named wasm", dir)
	}
	return filepath.Abs(filepath.Dir(dir))
}
