package app

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/descriptions"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/web/api"
	"sluice.dev/sluice/web/discovery"
	"sluice.dev/sluice/web/openapi"
	"sluice.dev/sluice/workers/payments"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/webhooks"
)

// fragments describe what stands behind the gateway. Whoever adds a route to
// deploy/sluice.yaml describes it in one of them; a test names those that are
// not.
var fragments = []openapi.Fragment{
	{Name: "api", Product: "api", YAML: api.OpenAPI},
	{Name: "requests", Product: "api", YAML: requestlog.OpenAPI},
	{Name: "schedules", Product: "api", YAML: schedules.OpenAPI},
	{Name: "webhooks", Product: "api", YAML: webhooks.OpenAPI},
	{Name: "x402", Product: "api", YAML: payments.OpenAPI},
	{Name: "media", Product: "media", YAML: media.OpenAPI},
	{Name: "discovery", Product: "api", YAML: discovery.OpenAPI},
	{Name: "runtime-reference", Product: "api", YAML: runtimePages},
	{Name: "placeholder", Product: discovery.Placeholder, YAML: discovery.PlaceholderOpenAPI()},
}

// ownFragments are those of them that a deployment with the profile gateway serves.
var ownFragments = []string{"api", "requests", "webhooks", "discovery"}

// admin describes the admin API.
var admin = openapi.Fragment{Name: "admin", Product: "admin", YAML: api.AdminOpenAPI}

// everything is all that our processes answer.
func everything() (*openapi.Document, error) {
	joined, err := openapi.Join(append(slices.Clone(fragments), admin)...)
	if err != nil {
		return nil, err
	}
	schemas, err := config.Schemas()
	if err != nil {
		return nil, err
	}
	joined.Define(schemas)
	return joined, nil
}

// adminDescription serves the OpenAPI document of the admin API.
func adminDescription(all bool) (api.Routes, error) {
	text, err := adminText(all)
	if err != nil {
		return nil, err
	}
	return func(r chi.Router, _ httpapi.Adapter) {
		r.Get("/openapi.json", func(w http.ResponseWriter, r *http.Request) { httpapi.Document(w, r, "application/json", text) })
	}, nil
}

// adminText is the OpenAPI document of the admin API.
func adminText(all bool) ([]byte, error) {
	joined, err := openapi.Join(admin)
	if err != nil {
		return nil, err
	}
	if !all {
		maps.DeleteFunc(joined.Paths, func(path string, _ any) bool {
			return strings.HasPrefix(path, "/admin/v1/payments") || strings.HasPrefix(path, "/admin/v1/x402")
		})
	}
	schemas, err := config.Schemas()
	if err != nil {
		return nil, err
	}
	joined.Define(schemas)
	return json.Marshal(joined.Whole(openapi.Info{
		Title: "Sluice admin", Version: openapi.APIVersion,
		Description: "For those who run the platform. Every path but /health needs a key with scope * of the operator.",
	}))
}

// publicDescription serves the OpenAPI document of the public API.
func (c *controlPlane) publicDescription() (*openapi.Service, error) {
	list, of := fragments, "a live media platform"
	if !c.all {
		list, of = slices.DeleteFunc(slices.Clone(fragments), func(f openapi.Fragment) bool { return !slices.Contains(ownFragments, f.Name) }), "the gateway itself"
	}
	joined, err := openapi.Join(list...)
	if err != nil {
		return nil, err
	}
	return &openapi.Service{
		Latest: c.current.Get, Joined: joined, Imported: c.imported(),
		Info: openapi.Info{
			Title: "Sluice", Version: openapi.APIVersion, URL: c.publicURL(),
			Description: "The public API of " + of + ". Every error has one form; its codes are at /docs/errors.",
		},
	}, nil
}

// imported are the descriptions of the products of others.
func (c *controlPlane) imported() func(context.Context) ([]openapi.Imported, int64, error) {
	current := &descriptions.Current{Store: descriptions.Store{DB: c.pool}}
	return func(ctx context.Context) ([]openapi.Imported, int64, error) {
		all, number, err := current.Get(ctx)
		list := make([]openapi.Imported, len(all))
		for i, d := range all {
			list[i] = openapi.Imported{Product: d.Product, Text: d.Text}
		}
		return list, number, err
	}
}
