package app

import (
	"context"
	"fmt"
	"log/slog"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/process/sandbox"
	"sluice.dev/sluice/platform/process/telemetry"
	"sluice.dev/sluice/platform/storage/postgres"
)

// RunMedia serves the reference product.
func RunMedia(ctx context.Context, env Environment) error {
	p, err := env.start(ctx, "media", 20)
	if err != nil {
		return err
	}
	defer p.close(ctx)
	s, err := p.services(p.pool)
	if err != nil {
		return err
	}
	c, err := p.media(ctx, s)
	if err != nil {
		return err
	}
	shutdown, bodies, err := p.requestLimits(c.Identity)
	if err != nil {
		return err
	}
	handler := telemetry.Beside(p.instrument("media", bodies.wrap(media.New(c))), p.metrics)
	return serve(ctx, shutdown, endpoint{name: "media", addr: p.Get("SLUICE_MEDIA_LISTEN"), streams: true, handler: handler})
}

// media is what the product works with; its jobs run in the worker.
func (p *process) media(ctx context.Context, s services) (c media.Config, err error) {
	c = media.Config{
		DB: postgres.Share(p.pool, identity.Account), Events: s.webhooks, Respond: p.respond,
		AnswerSecret: s.answerSecrets[0], FormerAnswerSecrets: s.answerSecrets[1:],
	}
	c.Subscribe = subscriber(s.webhooks)
	current := &config.Current{Store: config.Store{DB: p.pool}}
	c.Engines, c.EngineKey, c.Plans = engineSettings(current), p.Lookup, mediaPlans{current}
	if c.Identity, err = p.newVerifier(only(mediaProduct)); err != nil {
		return c, err
	}
	if c.Box, err = p.mediaBox(false); err != nil {
		return c, err
	}
	if c.Allow, err = p.prefixes("SLUICE_WEBHOOK_ALLOW_CIDRS"); err != nil {
		return c, err
	}
	if c.Transports, err = p.transports(); err != nil {
		return c, err
	}
	if err := p.confine(&c); err != nil {
		return c, err
	}
	c.Voices = p.Get("SLUICE_VOICES")
	for program, path := range map[programs.Program]*string{programs.FFmpeg: &c.FFmpeg, programs.Speech: &c.Speech, programs.Voice: &c.Voice, programs.Tesseract: &c.Tesseract} {
		tool, err := p.Program(ctx, program)
		if err != nil {
			return c, err
		}
		if tool != programs.Off {
			*path = tool
		}
	}
	if err := p.ingest(ctx, &c); err != nil {
		return c, err
	}
	return c, p.phone(&c)
}

// confine keeps this process's secrets from programs of the same user, such as those
// that handle strangers' films, and says in the log what holds those.
func (e Environment) confine(c *media.Config) error {
	switch text := e.Get("SLUICE_MEDIA_SANDBOX"); text {
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
