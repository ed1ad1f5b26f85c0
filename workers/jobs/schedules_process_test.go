package jobs_test

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/workers/jobs"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/run"
)

// scheduleProcessEnv makes this test binary a worker process for schedules.
const scheduleProcessEnv = "SLUICE_TEST_SCHEDULE_WORKER"

// scheduleService is the service as a worker process has it.
func scheduleService(pool *pgxpool.Pool) (*schedules.Service, *outbound.Client, error) {
	p, err := newParts(pool)
	if err != nil {
		return nil, nil, err
	}
	return schedules.New(schedules.Config{DB: pool, Jobs: p.jobs, Events: p.events, Box: p.box, CheckURL: p.client.CheckURL, Log: quiet}), p.client, nil
}

// startScheduleWorker starts a River client with the schedule jobs and the
// firing loop. They work until ctx ends.
func startScheduleWorker(ctx context.Context, pool *pgxpool.Pool) error {
	service, client, err := scheduleService(pool)
	if err != nil {
		return err
	}
	registry := river.NewWorkers()
	jobs.AddSchedules(registry, run.Runner{Store: service, Webhook: client, Log: quiet})
	c, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: jobs.Unpolled(jobs.ScheduleQueues()), Workers: registry, RescueStuckJobsAfter: time.Minute, Logger: quiet,
	})
	if err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	go jobs.DueJobs{DB: pool, Queues: jobs.ScheduleQueues(), Log: quiet}.Run(ctx)
	go jobs.ScheduleLoop{Service: service, Log: quiet}.Run(ctx)
	return nil
}
