package main

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/runtime/budget"
	"sluice.dev/sluice/runtime/chat"
	"sluice.dev/sluice/runtime/chat/upstream"
	"sluice.dev/sluice/runtime/providers"
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
	pool, err := env.database(ctx, "sluice runtime", 20)
	if err != nil {
		return err
	}
	defer pool.Close()
	ledger := budget.New(budget.Config{DB: pool})
	handler, err := server.New(server.Config{
		Targets:   targets,
		Ledger:    ledger,
		Secrets:   verifier.Secrets,
		Gateway:   "http://" + env.get("SLUICE_GATEWAY_ADDR"),
		PublicURL: "http://" + env.get("SLUICE_RUNTIME_ADDR"),
		DocsBase:  env.publicURL(),
	})
	if err != nil {
		return err
	}
	// The ledger outlives the server: streams that end last are recorded too.
	metering, stop := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { ledger.Run(metering); return nil })
	g.Go(func() error {
		defer stop()
		return serve(ctx, endpoint{name: "runtime", addr: env.get("SLUICE_RUNTIME_LISTEN"), streams: true, handler: handler})
	})
	return g.Wait()
}

// providers are those that the environment names; none: the built-in model.
func (e environment) providers() ([]chat.Target, error) {
	if file := e.get("SLUICE_MODEL_PROVIDERS"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("SLUICE_MODEL_PROVIDERS: %w", err)
		}
		return providers.Parse(text, e.lookup)
	}
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
