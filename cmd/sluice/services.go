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
	"sluice.dev/sluice/controlplane/gateway/status"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/process/telemetry/traces"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/secretbox"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/delivery"
)

// services are those that several processes share: the API takes requests for
// them, products emit events into them, and workers do their work.
type services struct {
	jobs      *river.Client[pgx.Tx] // inserts only
	box       *secretbox.Box
	answers   [32]byte   // protects the answers kept for repeated requests
	former    [][32]byte // protected those of before
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

// box seals the secrets that are stored, by the first key; all of them open.
func (e environment) box() (*secretbox.Box, error) {
	if _, err := e.require("SLUICE_SECRETS_KEY"); err != nil {
		return nil, err
	}
	return secretbox.New(e.sealing()...)
}

// answerSecrets are derived from the keys that seal, in their order.
func (e environment) answerSecrets() (list [][32]byte, err error) {
	for _, key := range e.sealing() {
		derived, err := hkdf.Expand(sha256.New, []byte(key), "kept answers", 32)
		if err != nil {
			return nil, err
		}
		list = append(list, [32]byte(derived))
	}
	return list, nil
}

// services builds them over pool; db is what their stores use, which is pool or
// joins the transaction of a request that may be repeated. metrics is where they
// register theirs, tracer makes the spans of the process.
func (e environment) services(pool *pgxpool.Pool, db postgres.DB, metrics prometheus.Registerer, tracer *traces.Tracer) (s services, err error) {
	s.tracer = tracer
	if s.box, err = e.box(); err != nil {
		return s, err
	}
	answers, err := e.answerSecrets()
	if err != nil {
		return s, err
	}
	s.answers, s.former = answers[0], answers[1:]
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
	s.webhooks = webhooks.New(webhooks.Config{DB: db, Jobs: jobs, Box: s.box, Client: s.outbound, Now: e.now})
	s.deliverer = delivery.New(delivery.Config{DB: pool, Service: s.webhooks, Client: s.outbound, Metrics: metrics, Now: e.now})
	s.schedules = schedules.New(schedules.Config{DB: db, Jobs: jobs, Events: s.webhooks, Box: s.box, CheckURL: s.outbound.CheckURL, Now: e.now})
	return s, nil
}
