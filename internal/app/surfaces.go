package app

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/edgestatus"
	"sluice.dev/sluice/controlplane/gateway/openapi/descriptions"
	"sluice.dev/sluice/controlplane/gateway/status"
	"sluice.dev/sluice/docs"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/web/api"
	"sluice.dev/sluice/web/dashboard"
	"sluice.dev/sluice/web/discovery"
	"sluice.dev/sluice/web/docsite"
	"sluice.dev/sluice/web/eventdocs"
	"sluice.dev/sluice/web/mcp"
	"sluice.dev/sluice/workers/payments"
)

// surfaces is what the public and the admin API are made of.
func (c *controlPlane) surfaces() (api.Config, error) {
	described, err := c.publicDescription()
	if err != nil {
		return api.Config{}, err
	}
	describedAdmin, err := adminDescription()
	if err != nil {
		return api.Config{}, err
	}
	documentation, err := docsite.New(docs.Files)
	if err != nil {
		return api.Config{}, err
	}
	proxies, err := c.prefixes("SLUICE_ADMIN_TRUSTED_PROXIES")
	if err != nil {
		return api.Config{}, err
	}
	facilitator := payments.Facilitator{
		Service: c.payments, Document: c.newestDocument, Identity: c.verifier, BaseURL: c.publicURL(), Places: fairshare.New(fairshare.Config{Places: 32}),
	}
	found := &discovery.Service{
		Latest: c.current.Get, About: mcp.About(Version),
		At:     discovery.Addresses{Gateway: c.publicURL(), Runtime: c.runtimeURL()},
		Prober: &discovery.Prober{Addresses: c.edges.Addresses},
	}
	tools := mcp.New(mcp.Config{
		Document: described.Text, Identity: c.verifier, Respond: c.respond, Hosts: c.mcpHosts(), Version: Version,
		Gateway: c.gatewayURL(), TLS: c.gatewayTLS(), PublicURL: c.publicURL(),
	})
	return api.Config{
		DB:           c.shared,
		Respond:      c.respond,
		Identity:     c.verifier,
		Sessions:     c.sessions,
		Proxies:      proxies,
		Region:       c.Get("SLUICE_REGION"),
		Version:      Version,
		AnswerSecret: c.answerSecrets[0], FormerAnswerSecrets: c.answerSecrets[1:],
		Open: []api.Routes{
			c.apps.Routes, eventdocs.Routes, documentation.Routes, described.Routes, facilitator.Routes, found.OpenRoutes,
			func(r chi.Router, _ httpapi.Adapter) {
				r.Method(http.MethodGet, mcp.Path, tools)
				r.Method(http.MethodPost, mcp.Path, tools)
			},
		},
		Keyed: []api.Routes{
			c.webhooks.Routes, c.webhooks.InternalRoutes, found.KeyedRoutes, c.schedules.Routes,
		},
		Admin: []api.Routes{
			c.documents.Routes, edgestatus.Store{DB: c.pool}.Routes, status.Store{DB: c.pool}.Routes, c.apps.AdminRoutes, describedAdmin, c.paymentsAdmin().Routes,
			descriptions.Service{Store: descriptions.Store{DB: c.pool}, Latest: c.store.Latest}.Routes,
		},
	}, nil
}

// dashboard is the pages for people. Their live parts end with ctx, so that a stop does
// not wait for them.
func (c *controlPlane) dashboard(ctx context.Context) func(chi.Router) {
	return dashboard.Routes(dashboard.Config{
		DB:        c.pool,
		Sessions:  c.sessions,
		Documents: c.documents,
		Webhooks:  c.webhooks,
		Schedules: c.schedules,
		Payments:  c.paymentsAdmin(),
		Version:   Version,
		Secure:    strings.HasPrefix(c.Get("SLUICE_ADMIN_URL"), "https://"),
		Done:      ctx.Done(),
	})
}
