package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/dev/pgserver"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/secretbox"
	"sluice.dev/sluice/workers/jobs"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/run"
	"sluice.dev/sluice/workers/webhooks"
)

const account = "acct_0000000000001"

var quiet = slog.New(slog.DiscardHandler)

// stack is a database server, a receiver, and the service.
type stack struct {
	dir      string
	server   *pgserver.Server
	pool     *pgxpool.Pool
	receiver *httptest.Server // answers every call with 200
	client   *outbound.Client
	service  *schedules.Service
}

func newStack(ctx context.Context) (*stack, error) {
	dir, err := os.MkdirTemp("", "bench-schedules-")
	if err != nil {
		return nil, err
	}
	s := &stack{dir: dir}
	if err := s.start(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *stack) start(ctx context.Context) (err error) {
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return err
	}
	if s.server, err = pgserver.Start(ctx, pgserver.Config{Dir: s.dir + "/pg", Path: os.Getenv("PATH")}); err != nil {
		return err
	}
	if err := migrations.Up(ctx, s.server.URL()); err != nil {
		return err
	}
	if s.pool, err = postgres.Open(ctx, postgres.Config{URL: s.server.URL(), MaxConns: 24}); err != nil {
		return err
	}
	if _, err := s.pool.Exec(ctx, `INSERT INTO accounts (id, name, plan) VALUES ($1, 'Bench', 'local')`, account); err != nil {
		return err
	}
	s.receiver = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return s.serve()
}

// serve makes the service; workers are started by work.
func (s *stack) serve() error {
	inserts, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{Logger: quiet})
	if err != nil {
		return err
	}
	box, err := secretbox.New(strings.Repeat("k", secretbox.MinKey))
	if err != nil {
		return err
	}
	s.client = outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxIdlePerHost: 1000})
	events := webhooks.New(webhooks.Config{DB: s.pool, Jobs: inserts, Box: box, Client: s.client, Log: quiet})
	s.service = schedules.New(schedules.Config{DB: s.pool, Jobs: inserts, Events: events, Box: box, CheckURL: s.client.CheckURL, Log: quiet})
	return nil
}

// work starts workers, which end with the context.
func (s *stack) work(ctx context.Context, n int) error {
	for range n {
		registry := river.NewWorkers()
		turns := jobs.AddSchedules(registry, run.Runner{Store: s.service, Webhook: s.client, Log: quiet})
		c, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{Queues: jobs.Unpolled(jobs.ScheduleQueues()), Workers: registry, Logger: quiet})
		if err != nil {
			return err
		}
		if err := c.Start(ctx); err != nil {
			return err
		}
		go jobs.DueJobs{DB: s.pool, Queues: jobs.ScheduleQueues(), Log: quiet}.Run(ctx)
		go jobs.ScheduleLoop{Service: s.service, Turns: turns, Log: quiet}.Run(ctx)
	}
	return nil
}

func (s *stack) stop() {
	if s.receiver != nil {
		s.receiver.Close()
	}
	if s.pool != nil {
		s.pool.Close()
	}
	if s.server != nil {
		_ = s.server.Stop()
	}
	_ = os.RemoveAll(s.dir)
}
