package main

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/controlplane/api"
	"sluice.dev/sluice/controlplane/config"
	"sluice.dev/sluice/controlplane/hub"
	"sluice.dev/sluice/controlplane/telemetry/traces"
	"sluice.dev/sluice/controlplane/web"
	"sluice.dev/sluice/controlplane/xds"
)

// dashboard is the pages for people on the admin listener. Their live parts end
// with ctx, so that a stop does not wait for them.
func (e environment) dashboard(ctx context.Context, pool *pgxpool.Pool, edges *xds.Server, tracer *traces.Tracer) (api.Routes, error) {
	s, err := e.services(pool, pool, prometheus.NewRegistry(), tracer) // deliveries, which have metrics, are not made here
	if err != nil {
		return nil, err
	}
	people, err := e.sessions(pool)
	if err != nil {
		return nil, err
	}
	return web.Routes(web.Config{
		DB:        pool,
		Sessions:  people,
		Documents: config.Admin{Store: config.Store{DB: pool}, Check: edges.Check},
		Webhooks:  s.webhooks,
		Schedules: s.schedules,
		Payments:  hub.Admin{DB: pool, Document: document(pool)},
		Version:   version,
		Secure:    strings.HasPrefix(e.get("SLUICE_ADMIN_URL"), "https://"),
		Done:      ctx.Done(),
	}), nil
}
