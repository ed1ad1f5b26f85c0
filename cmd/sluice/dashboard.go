package main

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/process/telemetry/traces"
	"sluice.dev/sluice/web/api"
	"sluice.dev/sluice/web/dashboard"
	"sluice.dev/sluice/workers/payments"
)

// addDashboard adds the pages for people to the surface of operators. Their live
// parts end with ctx, so that a stop does not wait for them.
func (e environment) addDashboard(ctx context.Context, surfaces *api.Config, pool *pgxpool.Pool, documents *config.Publisher, tracer *traces.Tracer) error {
	s, err := e.services(pool, pool, prometheus.NewRegistry(), tracer) // deliveries, which have metrics, are not made here
	if err != nil {
		return err
	}
	surfaces.Pages = append(surfaces.Pages, dashboard.Routes(dashboard.Config{
		DB:        pool,
		Sessions:  surfaces.Sessions,
		Documents: documents,
		Webhooks:  s.webhooks,
		Schedules: s.schedules,
		Payments:  payments.Admin{DB: pool, Document: document(pool)},
		Version:   version,
		Secure:    strings.HasPrefix(e.get("SLUICE_ADMIN_URL"), "https://"),
		Done:      ctx.Done(),
	}))
	return nil
}
