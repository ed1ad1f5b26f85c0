package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/process/sandbox"
	"sluice.dev/sluice/platform/process/telemetry"
	"sluice.dev/sluice/platform/storage/postgres"
)

// runMedia serves the reference product.
func runMedia(ctx context.Context, env environment) error {
	pool, err := env.database(ctx, "sluice media", 20)
	if err != nil {
		return err
	}
	defer pool.Close()
	env = env.timed(ctx, pool)
	defer present(ctx, pool, "media")()
	metrics := telemetry.New("media", version)
	metrics.MustRegister(telemetry.Pool(pool))
	tracer, err := env.tracer(ctx, "media")
	if err != nil {
		return err
	}
	defer tracer.Close(ctx)
	s, err := env.services(pool, pool, metrics, tracer)
	if err != nil {
		return err
	}
	c, err := env.media(ctx, pool, s)
	if err != nil {
		return err
	}
	end, err := env.stopping()
	if err != nil {
		return err
	}
	held, err := env.bodies(metrics, c.Identity, c.Respond)
	if err != nil {
		return err
	}
	handler := telemetry.Beside(tracer.Wrap(telemetry.NewRequests(metrics, "media").Wrap(held.wrap(media.New(c)))), metrics)
	return serve(ctx, end, endpoint{name: "media", addr: env.get("SLUICE_MEDIA_LISTEN"), streams: true, handler: handler})
}

// media is what the product works with; its jobs run in the worker.
func (e environment) media(ctx context.Context, pool *pgxpool.Pool, s services) (media.Config, error) {
	verifier, err := e.verifier(only(mediaProduct))
	if err != nil {
		return media.Config{}, err
	}
	box, err := e.mediaBox()
	if err != nil {
		return media.Config{}, err
	}
	allow, err := e.prefixes("SLUICE_WEBHOOK_ALLOW_CIDRS")
	if err != nil {
		return media.Config{}, err
	}
	c := media.Config{
		DB: postgres.Share(pool, identity.Account), Events: s.webhooks, Identity: verifier, Respond: httpapi.Adapter{DocsBase: e.publicURL()},
		Allow: allow, Box: box, AnswerSecret: s.answers, FormerAnswerSecrets: s.former,
	}
	if err := e.confine(&c); err != nil {
		return media.Config{}, err
	}
	tool, err := e.program(ctx, programs.FFmpeg)
	if err != nil {
		return c, err
	}
	if tool != programs.Off {
		c.FFmpeg = tool
	}
	return c, e.ingest(ctx, &c)
}

// confine keeps this process's secrets from programs of the same user, such as those
// that handle strangers' films, and says in the log what holds those.
func (e environment) confine(c *media.Config) error {
	switch text := e.get("SLUICE_MEDIA_SANDBOX"); text {
	case "":
	case "required":
		c.NeedSandbox = true
	default:
		return fmt.Errorf("SLUICE_MEDIA_SANDBOX is %q: it is required, or empty", text)
	}
	if err := sandbox.Protect(); err != nil {
		return err
	}
	if holds := sandbox.Check(); holds.Whole() {
		slog.Info("films are read in a sandbox", "holds", holds)
	} else {
		slog.Warn("films are read in a process of their own that this kernel cannot keep from network and files", "holds", holds, "refused", c.NeedSandbox)
	}
	return nil
}
