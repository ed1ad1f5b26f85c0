package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/dev/pgserver"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/secretbox"
	"sluice.dev/sluice/workers/jobs"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/delivery"
)

// stack is what runs in this process: the service and one worker. PostgreSQL
// runs beside it, writing durably.
type stack struct {
	server  *pgserver.Server
	pool    *pgxpool.Pool
	service *webhooks.Service
	client  *river.Client[pgx.Tx]
	account string
}

// start makes a stack over a new database in dir. The stack is to be stopped even
// if an error comes with it.
func start(ctx context.Context, dir string) (*stack, error) {
	server, err := pgserver.Start(ctx, pgserver.Config{Dir: dir, Path: os.Getenv("PATH")})
	if err != nil {
		return nil, err
	}
	s := &stack{server: server, account: "acct_0000000000001"}
	if err := migrations.Up(ctx, server.URL()); err != nil {
		return s, err
	}
	if s.pool, err = postgres.Open(ctx, postgres.Config{URL: server.URL(), MaxConns: 48, Name: "bench"}); err != nil {
		return s, err
	}
	if err := s.addAccount(ctx, s.account); err != nil {
		return s, err
	}
	return s, s.work(ctx)
}

// addAccount makes an account; subscriptions and events need one.
func (s *stack) addAccount(ctx context.Context, id string) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO accounts (id, name, plan) VALUES ($1, 'bench', 'local')`, id)
	return err
}

// addAccounts makes n more.
func (s *stack) addAccounts(ctx context.Context, n int) ([]string, error) {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("acct_%013d", i+2)
		if err := s.addAccount(ctx, ids[i]); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// work starts the worker, with the settings that the worker process has.
func (s *stack) work(ctx context.Context) error {
	// It inserts only; the cooldown bounds how often it tells workers of new jobs.
	inserts, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{FetchCooldown: 5 * time.Millisecond})
	if err != nil {
		return err
	}
	box, err := secretbox.New(secretbox.NewKey())
	if err != nil {
		return err
	}
	client := outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxIdlePerHost: 4096, MaxBody: 1 << 10})
	s.service = webhooks.New(webhooks.Config{DB: s.pool, Jobs: inserts, Box: box, Client: client, MaxSubscriptions: 50_000})
	deliverer := delivery.New(delivery.Config{DB: s.pool, Service: s.service, Client: client})
	registry := river.NewWorkers()
	jobs.AddWebhooks(registry, jobs.Webhooks{Service: s.service, Deliverer: deliverer})
	s.client, err = river.NewClient(riverpgxv5.New(s.pool), &river.Config{
		Queues: jobs.Unpolled(jobs.WebhookQueues()), Workers: registry, JobTimeout: 20 * time.Second, RescueStuckJobsAfter: time.Minute,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	go jobs.DueJobs{DB: s.pool, Queues: jobs.WebhookQueues()}.Run(ctx)
	go jobs.WebhookUpkeep{Deliverer: deliverer}.Run(ctx)
	return s.client.Start(ctx)
}

// stop ends the worker, then the database.
func (s *stack) stop(ctx context.Context) error {
	if s.client != nil {
		_ = s.client.StopAndCancel(ctx)
	}
	if s.pool != nil {
		s.pool.Close()
	}
	return s.server.Stop()
}

// subscribe makes n subscriptions of account, to url(i) each.
func (s *stack) subscribe(ctx context.Context, account string, n int, url func(int) string) error {
	for i := range n {
		_, err := s.service.Create(ctx, account, webhooks.Create{URL: url(i), Events: []string{event}, Secret: "a secret of the benchmark"})
		if err != nil {
			return err
		}
	}
	return nil
}
