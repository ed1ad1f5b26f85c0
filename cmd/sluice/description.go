package main

import (
	"sluice.dev/sluice/controlplane/api"
	"sluice.dev/sluice/controlplane/config"
	"sluice.dev/sluice/controlplane/openapi"
	"sluice.dev/sluice/controlplane/respond"
	"sluice.dev/sluice/controlplane/schedules"
	"sluice.dev/sluice/controlplane/webhooks"
	"sluice.dev/sluice/runtime/media"
)

// fragments describe what stands behind the gateway. Whoever adds a route to
// deploy/sluice.yaml describes it in one of them; a test names those that are
// not.
var fragments = []openapi.Fragment{
	{Name: "api", Product: "api", YAML: api.OpenAPI},
	{Name: "schedules", Product: "api", YAML: schedules.OpenAPI},
	{Name: "webhooks", Product: "api", YAML: webhooks.OpenAPI},
	{Name: "media", Product: "media", YAML: media.OpenAPI},
}

// publicDescription serves the OpenAPI document of the public API.
func (e environment) publicDescription(store config.Store, adapter respond.Adapter) (*openapi.Service, error) {
	joined, err := openapi.Join(fragments...)
	if err != nil {
		return nil, err
	}
	return &openapi.Service{
		Latest: store.Latest, Joined: joined, Respond: adapter,
		Info: openapi.Info{
			Title: "Sluice", Version: version, URL: e.publicURL(),
			Description: "The public API of a live media platform. Every error has one form; its codes are at /docs/errors.",
		},
	}, nil
}
