package main

import (
	"context"
	"fmt"

	"sluice.dev/sluice/runtime/chat"
	"sluice.dev/sluice/runtime/chat/upstream"
	"sluice.dev/sluice/runtime/server"
)

// runRuntime serves the chat runtime.
func runRuntime(ctx context.Context, env environment) error {
	verifier, err := env.verifier()
	if err != nil {
		return err
	}
	targets, err := env.providers()
	if err != nil {
		return err
	}
	handler, err := server.New(server.Config{
		Targets:   targets,
		Secrets:   verifier.Secrets,
		Gateway:   "http://" + env.get("SLUICE_GATEWAY_ADDR"),
		PublicURL: "http://" + env.get("SLUICE_RUNTIME_ADDR"),
		DocsBase:  env.publicURL(),
	})
	if err != nil {
		return err
	}
	return serve(ctx, endpoint{name: "runtime", addr: env.get("SLUICE_RUNTIME_LISTEN"), streams: true, handler: handler})
}

// providers are those that the environment names; none: the built-in model.
func (e environment) providers() ([]chat.Target, error) {
	base := e.get("SLUICE_MODEL_UPSTREAM")
	if base == "" {
		return nil, nil
	}
	p, err := upstream.New(upstream.Config{BaseURL: base, Key: e.get("SLUICE_MODEL_UPSTREAM_KEY")})
	if err != nil {
		return nil, fmt.Errorf("SLUICE_MODEL_UPSTREAM: %w", err)
	}
	return []chat.Target{{Name: "upstream", Provider: p}}, nil
}
