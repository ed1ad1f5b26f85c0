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
	"sluice.dev/sluice/controlplane/schedules"
	"sluice.dev/sluice/controlplane/schedules/run"
	"sluice.dev/sluice/controlplane/webhooks"
	"sluice.dev/sluice/controlplane/webhooks/seal"
	"sluice.dev/sluice/workers"
)

// scheduleProcessEnv makes this test binary a worker process for schedules
// instead: its value is the database.
const scheduleProcessEnv = "SLUICE_TEST_SCHEDULE_WORKER"

func init() {
	if url := os.Getenv(scheduleProcessEnv); url != "" {
		if err := runScheduleProcess(context.Background(), url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {} // until it is killed
	}
}

func runScheduleProcess(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	return startScheduleWorker(ctx, pool)
}

// scheduleService is the service as a worker process has it.
func scheduleService(pool *pgxpool.Pool) (*schedules.Service, *outbound.Client, error) {
	quiet := slog.New(slog.DiscardHandler)
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet})
	if err != nil {
		return nil, nil, err
	}
	box, err := seal.New(strings.Repeat("k", seal.MinKey))
	if err != nil {
		return nil, nil, err
	}
	client := outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	events := webhooks.New(webhooks.Config{DB: pool, Jobs: jobs, Box: box, Client: client, Log: quiet})
	service := schedules.New(schedules.Config{DB: pool, Jobs: jobs, Events: events, CheckURL: client.CheckURL, Log: quiet})
	return service, client, nil
}

// startScheduleWorker starts a River client with the schedule jobs and the
// firing loop. They work until ctx ends.
func startScheduleWorker(ctx context.Context, pool *pgxpool.Pool) error {
	service, client, err := scheduleService(pool)
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	registry := river.NewWorkers()
	workers.AddSchedules(registry, run.Runner{Store: service, Webhook: client, Log: quiet})
	c, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: workers.ScheduleQueues(), Workers: registry, RescueStuckJobsAfter: time.Minute, Logger: quiet,
	})
	if err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	go workers.ScheduleLoop{Service: service, Log: quiet}.Run(ctx)
	return nil
}
