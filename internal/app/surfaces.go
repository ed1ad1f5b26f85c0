package app

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts/billing/provider"
	"sluice.dev/sluice/controlplane/gateway/edgestatus"
	"sluice.dev/sluice/controlplane/gateway/openapi/descriptions"
	"sluice.dev/sluice/controlplane/gateway/status"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/web/api"
	"sluice.dev/sluice/web/dashboard"
	"sluice.dev/sluice/web/discovery"
	"sluice.dev/sluice/web/mcp"
	"sluice.dev/sluice/workers/payments"
)

// surfaces is what the public and the admin API are made of.
func (c *controlPlane) surfaces() (api.Config, error) {
	described, err := c.publicDescription()
	if err != nil {
		return api.Config{}, err
	}
	describedAdmin, err := adminDescription(c.all)
	if err != nil {
		return api.Config{}, err
	}
	pages, err := documentation(c.all, described.Text, c.webhooks.Types())
	if err != nil {
		return api.Config{}, err
	}
	proxies, err := c.prefixes("SLUICE_ADMIN_TRUSTED_PROXIES")
	if err != nil {
		return api.Config{}, err
	}
	found := &discovery.Service{
		Latest: c.current.Get, About: mcp.About(Version),
		At:     discovery.Addresses{Gateway: c.publicURL(), Runtime: c.runtimeURL()},
		Alone:  !c.all,
		Prober: &discovery.Prober{Addresses: c.edges.Addresses},
	}
	money, err := c.billingProvider()
	if err != nil {
		return api.Config{}, err
	}
	tools := mcp.New(mcp.Config{
		Document: described.Text, Identity: c.verifier, Respond: c.respond, Hosts: c.mcpHosts(), Version: Version,
		Gateway: c.gatewayURL(), TLS: c.gatewayTLS(), PublicURL: c.publicURL(),
	})
	surfaces := api.Config{
		DB:           c.shared,
		Respond:      c.respond,
		Identity:     c.verifier,
		Sessions:     c.sessions,
		Proxies:      proxies,
		Region:       c.Get("SLUICE_REGION"),
		Version:      Version,
		Provider:     money,
		Prices:       c.prices,
		Resumed:      c.resumed,
		AnswerSecret: c.answerSecrets[0], FormerAnswerSecrets: c.answerSecrets[1:],
		Open: []api.Routes{
			c.apps.Routes, pages, described.Routes, found.OpenRoutes,
			func(r chi.Router, _ httpapi.Adapter) {
				r.Method(http.MethodGet, mcp.Path, tools)
				r.Method(http.MethodPost, mcp.Path, tools)
			},
		},
		Keyed: []api.Routes{c.webhooks.Routes, c.webhooks.InternalRoutes, c.requests(c.shared).Routes},
		Admin: []api.Routes{
			c.documents.Routes, c.rehearsals.Routes, edgestatus.Store{DB: c.pool}.Routes, c.requests(c.pool).AdminRoutes, status.Store{DB: c.pool}.Routes, c.apps.AdminRoutes, describedAdmin,
			descriptions.Service{Store: descriptions.Store{DB: c.pool}, Latest: c.store.Latest}.Routes, c.named.store.Routes,
		},
	}
	if c.all {
		facilitator := payments.Facilitator{
			Service: c.payments, Document: c.newestDocument, Identity: c.verifier, BaseURL: c.publicURL(), Places: fairshare.New(fairshare.Config{Places: 32}),
		}
		surfaces.Open = append(surfaces.Open, facilitator.Routes)
		surfaces.Keyed = append(surfaces.Keyed, found.KeyedRoutes, c.schedules.Routes)
		surfaces.Admin = append(surfaces.Admin, c.paymentsAdmin().Routes)
	}
	return surfaces, nil
}

// dashboard is the pages for people. Their live parts end with ctx, so that a stop does
// not wait for them.
func (c *controlPlane) dashboard(ctx context.Context, money provider.Provider) func(chi.Router) {
	return dashboard.Routes(dashboard.Config{
		DB:        c.pool,
		Sessions:  c.sessions,
		Documents: c.documents,
		Webhooks:  c.webhooks,
		Schedules: c.schedules,
		Payments:  c.paymentsAdmin(),
		Apps:      c.apps,
		Media:     c.media,
		Provider:  money,
		Prices:    c.prices,
		Resumed:   c.resumed,
		Alone:     !c.all,
		OnChain:   c.Get("SLUICE_X402_SETTLEMENT") != "ledger",
		Requests:  c.requests(c.pool),
		Rehearse:  c.rehearsals,
		Version:   Version,
		Secure:    strings.HasPrefix(c.Get("SLUICE_ADMIN_URL"), "https://"),
		Done:      ctx.Done(),
	})
}
