package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/process/telemetry"
	"sluice.dev/sluice/runtime/budget"
	"sluice.dev/sluice/runtime/chat"
	"sluice.dev/sluice/runtime/chat/upstream"
	"sluice.dev/sluice/runtime/providers"
	"sluice.dev/sluice/runtime/server"
)

// RunRuntime serves the chat runtime.
func RunRuntime(ctx context.Context, env Environment) error {
	c, err := env.chatLimits()
	if err != nil {
		return err
	}
	if c.Targets, err = env.providers(); err != nil {
		return err
	}
	c.Standalone = env.Get("SLUICE_RUNTIME_STANDALONE") == "1"
	if c.NoEcho, err = env.withoutEcho(len(c.Targets)); err != nil {
		return err
	}
	p, err := env.start(ctx, "runtime", 20)
	if err != nil {
		return err
	}
	defer p.close(ctx)
	verifier, err := p.newVerifier(only(runtimeProduct))
	if err != nil && (!c.Standalone || p.Get("SLUICE_IDENTITY_SECRETS") != "") { // alone, it need not know any edge
		return err
	}
	ledger := budget.New(budget.Config{DB: p.pool, Metrics: p.metrics})
	c.Metrics, c.Ledger, c.Now = p.metrics, ledger, p.now
	c.Repeatable = idempotency.New(idempotency.Config{DB: p.pool, Respond: p.respond, Now: p.now})
	c.ScopesAsked = (&budget.ScopesAsked{DB: p.pool, Now: p.now}).Get
	c.Secrets, c.Leads, c.Own = verifier.Secrets, verifier.Leads, verifier.Own
	c.Gateway, c.GatewayTLS = p.gatewayURL(), p.gatewayTLS()
	c.PublicURL, c.DocsBase, c.Hosts = p.runtimeURL(), p.publicURL(), p.mcpHosts()
	handler, err := server.New(c)
	if err != nil {
		return err
	}
	shutdown, bodies, err := p.requestLimits(verifier)
	if err != nil {
		return err
	}
	handler = telemetry.Beside(p.instrument("runtime", bodies.wrap(handler)), p.metrics)
	// The ledger outlives the server: streams that end last are recorded too.
	metering, stop := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { ledger.Run(metering); return nil })
	g.Go(func() error {
		defer stop()
		return serve(ctx, shutdown, endpoint{name: "runtime", addr: p.Get("SLUICE_RUNTIME_LISTEN"), streams: true, handler: handler})
	})
	return g.Wait()
}

// chatLimits is a configuration with the bounds that the environment sets.
func (e Environment) chatLimits() (c server.Config, err error) {
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
func (e Environment) withoutEcho(providers int) (bool, error) {
	mode := e.Get("SLUICE_CHAT_ECHO")
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
func (e Environment) providers() ([]chat.Target, error) {
	if file := e.Get("SLUICE_MODEL_PROVIDERS"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("SLUICE_MODEL_PROVIDERS: %w", err)
		}
		return providers.Parse(text, e.Lookup)
	}
	base := e.Get("SLUICE_MODEL_UPSTREAM")
	if base == "" {
		return nil, nil
	}
	p, err := upstream.New(upstream.Config{BaseURL: base, Key: e.Get("SLUICE_MODEL_UPSTREAM_KEY")})
	if err != nil {
		return nil, fmt.Errorf("SLUICE_MODEL_UPSTREAM: %w", err)
	}
	return []chat.Target{{Name: "upstream", Provider: p}}, nil
}
