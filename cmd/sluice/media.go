package main

import (
	"context"

	"sluice.dev/sluice/controlplane/respond"
	"sluice.dev/sluice/runtime/media"
)

// runMedia serves the reference product.
func runMedia(ctx context.Context, env environment) error {
	pool, err := env.database(ctx, "sluice media", 20)
	if err != nil {
		return err
	}
	defer pool.Close()
	verifier, err := env.verifier()
	if err != nil {
		return err
	}
	s, err := env.services(pool)
	if err != nil {
		return err
	}
	return serve(ctx, endpoint{name: "media", addr: env.get("SLUICE_MEDIA_LISTEN"), streams: true, handler: media.New(media.Config{
		DB: pool, Events: s.webhooks, Identity: verifier, Respond: respond.Adapter{DocsBase: env.publicURL()},
	})})
}
