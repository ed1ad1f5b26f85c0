package discovery

import (
	"context"
	_ "embed"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/mcpserver"
)

// Where the descriptions stand.
const (
	registryPath = "/.well-known/platform-products.json"
	schemaPath   = "/.well-known/platform-products.schema.json"
	manifestPath = "/.well-known/mcp.json"
	cardPath     = "/.well-known/agent-card.json"
)

//go:embed registry.schema.json
var registrySchema []byte

// Service answers for the platform.
type Service struct {
	// Latest returns the configuration in force.
	Latest func(context.Context) (config.Version, error)
	Prober *Prober
	At     Addresses
	Alone  bool            // there is no product but those of the configuration
	About  mcpserver.About // the MCP server
}

// OpenRoutes mounts the descriptions, which are for everyone, pages of other
// sites included.
func (s *Service) OpenRoutes(r chi.Router, a httpapi.Adapter) {
	describe(r, a, registryPath, func(ctx context.Context) (any, error) { return s.registry(ctx) })
	describe(r, a, cardPath, func(ctx context.Context) (any, error) {
		registry, err := s.registry(ctx)
		return NewCard(registry, s.About.Version), err
	})
	describe(r, a, manifestPath, func(context.Context) (any, error) { return NewManifest(s.At.Gateway, s.About), nil })
	serve(r, a, schemaPath, func(w http.ResponseWriter, r *http.Request) error {
		httpapi.Document(w, r, "application/schema+json", registrySchema)
		return nil
	})
}

// registry is the registry of now.
func (s *Service) registry(ctx context.Context) (Registry, error) {
	v, err := s.Latest(ctx)
	if err != nil {
		return Registry{}, err
	}
	r := Build(v, s.At, s.Prober.Reports(ctx, v))
	if s.Alone {
		r.onlyConfigured()
	}
	return r, nil
}

// describe serves what make returns as JSON.
func describe(r chi.Router, a httpapi.Adapter, path string, make func(context.Context) (any, error)) {
	serve(r, a, path, func(w http.ResponseWriter, r *http.Request) error {
		v, err := make(r.Context())
		if err != nil {
			return err
		}
		return httpapi.JSONDocument(w, r, v)
	})
}

// serve mounts a description, and the answer for browsers that ask first.
func serve(r chi.Router, a httpapi.Adapter, path string, h httpapi.HandlerFunc) {
	r.Get(path, a.Handle(h))
	r.Options(path, httpapi.Preflight)
}

// KeyedRoutes mounts the surfaces that the platform has a name but no engine
// for. They answer before a body is read.
func (s *Service) KeyedRoutes(r chi.Router, a httpapi.Adapter) {
	for _, one := range known() {
		h := a.Handle(func(http.ResponseWriter, *http.Request) error {
			return apierror.Errorf(decision.NotImplemented, "%s needs %s, which is not here: %s lists what is available.",
				one.Title, one.Needs, s.At.Gateway+registryPath)
		})
		for _, path := range one.placeholderPaths() {
			r.HandleFunc(path, h)
			r.HandleFunc(path+"/*", h)
		}
	}
}

// IsPlaceholder reports whether the placeholder answers at a path.
func IsPlaceholder(path string) bool {
	return slices.ContainsFunc(known(), func(s surface) bool {
		return slices.ContainsFunc(s.placeholderPaths(), func(p string) bool { return below(p, path) })
	})
}
