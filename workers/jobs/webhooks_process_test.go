package jobs_test

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/workers/jobs"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/delivery"
)

// processEnv makes this test binary a worker process for webhooks.
const processEnv = "SLUICE_TEST_WEBHOOK_WORKER"

// startImpatientWorker works on deliveries; what a crash leaves is picked up
// soon.
func startImpatientWorker(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := startWorker(ctx, pool, []time.Duration{
		100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond,
	})
	return err
}

// startWorker starts a River client with the webhook jobs. It works until ctx
// ends.
func startWorker(ctx context.Context, pool *pgxpool.Pool, schedule []time.Duration) (*webhooks.Service, error) {
	p, err := newParts(pool)
	if err != nil {
		return nil, err
	}
	d := delivery.New(delivery.Config{DB: pool, Service: p.events, Client: p.client, Schedule: schedule, StoreTimeout: 2 * time.Second, Log: quiet})
	registry := river.NewWorkers()
	jobs.AddWebhooks(registry, jobs.Webhooks{Service: p.events, Deliverer: d, JobTimeout: 4 * time.Second, Log: quiet})
	c, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: jobs.Unpolled(jobs.WebhookQueues()), Workers: registry, JobTimeout: 4 * time.Second, RescueStuckJobsAfter: time.Minute, Logger: quiet,
	})
	if err != nil {
		return nil, err
	}
	go jobs.DueJobs{DB: pool, Queues: jobs.WebhookQueues(), Log: quiet}.Run(ctx)
	go jobs.WebhookUpkeep{Deliverer: d, Every: 200 * time.Millisecond, StuckAfter: 2 * time.Second, Log: quiet}.Run(ctx)
	return p.events, c.Start(ctx)
}
