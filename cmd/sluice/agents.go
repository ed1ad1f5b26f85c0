package main

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/web/discovery"
	"sluice.dev/sluice/web/mcp"
)

// agents is what machines find on the gateway: descriptions of the platform, and
// the API as tools.
type agents struct {
	discovery *discovery.Service
	mcp       http.Handler
}

// agents makes them from the configuration in force; reached says where an
// upstream of it is, document is the public API
// that it leads to.
func (e environment) agents(current *config.Current, reached func(upstream string) []string, document func(context.Context) ([]byte, error), verifier identity.Verifier, adapter httpapi.Adapter) agents {
	return agents{
		discovery: &discovery.Service{
			Latest: current.Get, About: mcp.About(version),
			At:     discovery.Addresses{Gateway: e.publicURL(), Runtime: e.runtimeURL()},
			Prober: &discovery.Prober{Addresses: reached},
		},
		mcp: mcp.New(mcp.Config{
			Document: document, Identity: verifier, Respond: adapter, Hosts: e.mcpHosts(), Version: version,
			Gateway: e.gatewayURL(), TLS: e.gatewayTLS(), PublicURL: e.publicURL(),
		}),
	}
}

// openRoutes mounts what is for everyone.
func (a agents) openRoutes(r chi.Router, adapter httpapi.Adapter) {
	a.discovery.OpenRoutes(r, adapter)
	r.Method(http.MethodGet, mcp.Path, a.mcp)
	r.Method(http.MethodPost, mcp.Path, a.mcp)
}
