package main

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/outbound"
	"sluice.dev/sluice/controlplane/postgres"
	"sluice.dev/sluice/controlplane/schedules"
	"sluice.dev/sluice/controlplane/status"
	"sluice.dev/sluice/controlplane/telemetry/traces"
	"sluice.dev/sluice/controlplane/webhooks"
	"sluice.dev/sluice/controlplane/webhooks/delivery"
	"sluice.dev/sluice/controlplane/webhooks/seal"
)

// services are those that several processes share: the API takes requests for
// them, products emit events into them, and workers do their work.
type services struct {
	jobs      *river.Client[pgx.Tx] // inserts only
	box       *seal.Box
	answers   [32]byte // protects the answers kept for repeated requests
	outbound  *outbound.Client
	tracer    *traces.Tracer
	webhooks  *webhooks.Service
	deliverer *delivery.Deliverer
	schedules *schedules.Service
}

// present has the others see that a process runs, until the function that it
// returns is called.
func present(ctx context.Context, pool *pgxpool.Pool, kind string) (leave func()) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error {
		status.Beat{DB: pool, Name: replicaName(), Kind: kind, Build: version}.Run(ctx)
		return nil
	})
	return func() { stop(); _ = g.Wait() }
}

// box seals the secrets that are stored.
func (e environment) box() (*seal.Box, error) {
	key, err := e.require("SLUICE_SECRETS_KEY")
	if err != nil {
		return nil, err
	}
	return seal.New(key)
}

// services builds them over pool; db is what their stores use, which is pool or
// joins the transaction of a request that may be repeated. metrics is where they
// register theirs, tracer makes the spans of the process.
func (e environment) services(pool *pgxpool.Pool, db postgres.DB, metrics prometheus.Registerer, tracer *traces.Tracer) (s services, err error) {
	s.tracer = tracer
	if s.box, err = e.box(); err != nil {
		return s, err
	}
	answers, err := hkdf.Expand(sha256.New, []byte(e.get("SLUICE_SECRETS_KEY")), "kept answers", len(s.answers))
	if err != nil {
		return s, err
	}
	s.answers = [32]byte(answers)
	allow, err := e.prefixes("SLUICE_WEBHOOK_ALLOW_CIDRS")
	if err != nil {
		return s, err
	}
	// This client inserts only. Its cooldown bounds how soon workers are told of a
	// second job: the default adds 30 ms to a webhook's way.
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{FetchCooldown: 5 * time.Millisecond, Logger: slog.Default(), Middleware: tracer.Jobs()})
	if err != nil {
		return s, err
	}
	s.jobs = jobs
	s.outbound = outbound.New(outbound.Config{Allow: allow, MaxIdlePerHost: 64})
	s.webhooks = webhooks.New(webhooks.Config{DB: db, Jobs: jobs, Box: s.box, Client: s.outbound})
	s.deliverer = delivery.New(delivery.Config{DB: pool, Service: s.webhooks, Client: s.outbound, Metrics: metrics})
	s.schedules = schedules.New(schedules.Config{DB: db, Jobs: jobs, Events: s.webhooks, CheckURL: s.outbound.CheckURL})
	return s, nil
}
