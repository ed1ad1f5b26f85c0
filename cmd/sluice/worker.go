package main

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/controlplane/outbound"
	"sluice.dev/sluice/controlplane/webhooks"
	"sluice.dev/sluice/controlplane/webhooks/delivery"
	"sluice.dev/sluice/controlplane/webhooks/seal"
	"sluice.dev/sluice/workers"
)

// Bounds of jobs. A job that ran longer than rescueAfter belongs to a worker
// that died, because no job may take longer than jobTimeout.
const (
	jobTimeout  = 30 * time.Second
	rescueAfter = 60 * time.Second
)

// runWorker works off River's queues.
func runWorker(ctx context.Context, env environment) error {
	pool, err := env.database(ctx, "sluice worker", 20)
	if err != nil {
		return err
	}
	defer pool.Close()
	hooks, err := env.webhooks(pool)
	if err != nil {
		return err
	}
	client, err := env.outbound()
	if err != nil {
		return err
	}
	deliverer := delivery.New(delivery.Config{DB: pool, Service: hooks, Client: client})

	jobs := river.NewWorkers()
	workers.AddWebhooks(jobs, workers.Webhooks{Service: hooks, Deliverer: deliverer})
	queues := map[string]river.QueueConfig{}
	maps.Copy(queues, workers.WebhookQueues())
	r, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers: jobs, Queues: queues, JobTimeout: jobTimeout, RescueStuckJobsAfter: rescueAfter, Logger: slog.Default(),
	})
	if err != nil {
		return err
	}
	if err := r.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	workers.WebhookUpkeep{Deliverer: deliverer}.Run(ctx)
	return stopJobs(context.WithoutCancel(ctx), r)
}

// stopJobs lets the jobs under way end. Those that do not are run again
// elsewhere: a job is done when its transaction commits.
func stopJobs(ctx context.Context, r *river.Client[pgx.Tx]) error {
	soft, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := r.Stop(soft); err != nil {
		hard, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return r.StopAndCancel(hard)
	}
	return nil
}

// webhooks is the service that stores events and makes jobs of them.
func (e environment) webhooks(pool *pgxpool.Pool) (*webhooks.Service, error) {
	key, err := e.require("SLUICE_SECRETS_KEY")
	if err != nil {
		return nil, err
	}
	box, err := seal.New(key)
	if err != nil {
		return nil, err
	}
	inserter, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: slog.Default()})
	if err != nil {
		return nil, err
	}
	client, err := e.outbound()
	if err != nil {
		return nil, err
	}
	return webhooks.New(webhooks.Config{DB: pool, Jobs: inserter, Box: box, Client: client}), nil
}

// outbound is the guarded client for addresses that customers choose.
func (e environment) outbound() (*outbound.Client, error) {
	allow, err := e.prefixes("SLUICE_WEBHOOK_ALLOW_CIDRS")
	if err != nil {
		return nil, err
	}
	return outbound.New(outbound.Config{Allow: allow}), nil
}
