package workers_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/controlplane/outbound"
	"sluice.dev/sluice/controlplane/webhooks"
	"sluice.dev/sluice/controlplane/webhooks/delivery"
	"sluice.dev/sluice/controlplane/webhooks/seal"
	"sluice.dev/sluice/workers"
)

// processEnv makes this test binary a worker process instead: its value is the
// database.
const processEnv = "SLUICE_TEST_WEBHOOK_WORKER"

func init() {
	if url := os.Getenv(processEnv); url != "" {
		if err := runProcess(context.Background(), url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {} // until it is killed
	}
}

// runProcess works on deliveries; what a crash leaves is picked up soon.
func runProcess(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	_, err = startWorker(ctx, pool, []time.Duration{
		100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond,
	})
	return err
}

// startWorker starts a River client with the webhook jobs. It works until ctx
// ends.
func startWorker(ctx context.Context, pool *pgxpool.Pool, schedule []time.Duration) (*webhooks.Service, error) {
	quiet := slog.New(slog.DiscardHandler)
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	box, err := seal.New(strings.Repeat("k", seal.MinKey))
	if err != nil {
		return nil, err
	}
	client := outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	s := webhooks.New(webhooks.Config{DB: pool, Jobs: jobs, Box: box, Client: client, Log: quiet})
	d := delivery.New(delivery.Config{DB: pool, Service: s, Client: client, Schedule: schedule, StoreTimeout: 2 * time.Second, Log: quiet})
	registry := river.NewWorkers()
	workers.AddWebhooks(registry, workers.Webhooks{Service: s, Deliverer: d, JobTimeout: 4 * time.Second, Log: quiet})
	c, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: workers.WebhookQueues(), Workers: registry, JobTimeout: 4 * time.Second, RescueStuckJobsAfter: time.Minute, Logger: quiet,
	})
	if err != nil {
		return nil, err
	}
	go workers.WebhookUpkeep{Deliverer: d, Every: 200 * time.Millisecond, StuckAfter: 2 * time.Second, Log: quiet}.Run(ctx)
	return s, c.Start(ctx)
}
