package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/process/telemetry"
	"sluice.dev/sluice/runtime/budget"
	"sluice.dev/sluice/runtime/chat"
	"sluice.dev/sluice/runtime/chat/upstream"
	"sluice.dev/sluice/runtime/providers"
	"sluice.dev/sluice/runtime/server"
)

// runRuntime serves the chat runtime.
func runRuntime(ctx context.Context, env environment) error {
	targets, err := env.providers()
	if err != nil {
		return err
	}
	c, err := env.chatLimits()
	if err != nil {
		return err
	}
	pool, err := env.database(ctx, "sluice runtime", 20)
	if err != nil {
		return err
	}
	defer pool.Close()
	env = env.timed(ctx, pool)
	c.Standalone = env.get("SLUICE_RUNTIME_STANDALONE") == "1"
	verifier, err := env.verifier(only(runtimeProduct))
	if err != nil && (!c.Standalone || env.get("SLUICE_IDENTITY_SECRETS") != "") { // alone, it need not know any edge
		return err
	}
	defer present(ctx, pool, "runtime")()
	tracer, err := env.tracer(ctx, "runtime")
	if err != nil {
		return err
	}
	defer tracer.Close(ctx)
	metrics := telemetry.New("runtime", version)
	metrics.MustRegister(telemetry.Pool(pool))
	c.Metrics = metrics
	ledger := budget.New(budget.Config{DB: pool, Metrics: metrics})
	if c.NoEcho, err = env.withoutEcho(len(targets)); err != nil {
		return err
	}
	c.Targets, c.Ledger, c.Now = targets, ledger, env.now
	c.Secrets, c.Leads, c.Own = verifier.Secrets, verifier.Leads, verifier.Own
	c.Gateway, c.GatewayTLS = env.gatewayURL(), env.gatewayTLS()
	c.PublicURL, c.DocsBase, c.Hosts = env.runtimeURL(), env.publicURL(), env.mcpHosts()
	handler, err := server.New(c)
	if err != nil {
		return err
	}
	end, err := env.stopping()
	if err != nil {
		return err
	}
	held, err := env.bodies(metrics, verifier, httpapi.Adapter{DocsBase: env.publicURL()})
	if err != nil {
		return err
	}
	handler = telemetry.Beside(tracer.Wrap(telemetry.NewRequests(metrics, "runtime").Wrap(held.wrap(handler))), metrics)
	// The ledger outlives the server: streams that end last are recorded too.
	metering, stop := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { ledger.Run(metering); return nil })
	g.Go(func() error {
		defer stop()
		return serve(ctx, end, endpoint{name: "runtime", addr: env.get("SLUICE_RUNTIME_LISTEN"), streams: true, handler: handler})
	})
	return g.Wait()
}

// chatLimits is a configuration with the bounds that the environment sets.
func (e environment) chatLimits() (c server.Config, err error) {
	upload, err := e.number("SLUICE_MAX_UPLOAD", 1, math.MaxInt)
	c.MaxUpload = int64(upload)
	streams, bad := e.number("SLUICE_CHAT_STREAMS", 1024, 1<<20) // a quarter must hold the longest request
	c.Streams = streams
	return c, errors.Join(err, bad, e.durations(map[string]*time.Duration{
		"SLUICE_CHAT_FIRST_EVENT": &c.FirstEvent, "SLUICE_CHAT_IDLE": &c.Idle, "SLUICE_CHAT_KEEP_ALIVE": &c.KeepAlive,
	}))
}

// withoutEcho reports whether the built-in models are left out, beside so many
// providers.
func (e environment) withoutEcho(providers int) (bool, error) {
	mode := e.get("SLUICE_CHAT_ECHO")
	switch {
	case mode == "auto":
		return providers > 0, nil
	case mode == "off" && providers == 0:
		return false, errors.New("SLUICE_CHAT_ECHO is off and there is no provider: set SLUICE_MODEL_UPSTREAM or SLUICE_MODEL_PROVIDERS")
	case mode == "on", mode == "off":
		return mode == "off", nil
	}
	return false, fmt.Errorf("SLUICE_CHAT_ECHO is %q: expected on, off or auto", mode)
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
