package app

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/process/telemetry"
	"sluice.dev/sluice/workers/jobs"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/product"
	"sluice.dev/sluice/workers/schedules/run"
)

// Bounds of jobs. A job that ran longer than rescueAfter belongs to a worker
// that died, because no job may take longer than jobTimeout.
const (
	jobTimeout  = 30 * time.Second
	rescueAfter = 60 * time.Second
)

// RunWorker works off River's queues, fires schedules and keeps house. Any
// number of workers may run: each piece of work is taken by one of them.
func RunWorker(ctx context.Context, env Environment) error {
	p, err := env.start(ctx, "worker", 30)
	if err != nil {
		return err
	}
	defer p.close(ctx)
	p.metrics.MustRegister(telemetry.NewBacklog(p.pool))
	s, err := p.services(p.pool)
	if err != nil {
		return err
	}
	users, err := p.sessions(p.pool)
	if err != nil {
		return err
	}
	product, err := p.media(ctx, s)
	if err != nil {
		return err
	}
	r, turns, err := p.jobs(s, product)
	if err != nil {
		return err
	}
	if err := r.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	loops, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context){
		jobs.WebhookUpkeep{Deliverer: s.deliverer}.Run,
		jobs.ScheduleLoop{Service: s.schedules, Turns: turns, Fired: jobs.NewScheduleMetrics(p.metrics).Observe}.Run,
		jobs.Metering{Store: usage.Store{DB: p.pool}}.Run,
		jobs.Housekeeping{DB: p.pool, Sessions: users, Apps: p.oauth(p.pool, users)}.Run,
		media.NewUpkeep(product).Run,
	} {
		loops.Go(func() error { run(ctx); return nil })
	}
	alive := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		httpapi.JSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	loops.Go(func() error {
		return serve(ctx, atOnce, endpoint{name: "worker", addr: p.Get("SLUICE_WORKER_LISTEN"), handler: telemetry.Beside(alive, p.metrics)})
	})
	return errors.Join(loops.Wait(), stopJobs(context.WithoutCancel(ctx), r))
}

// jobs is the client that works off the queues, and what says which executions have to
// wait.
func (p *process) jobs(s services, product media.Config) (r *river.Client[pgx.Tx], turns schedules.Turns, err error) {
	streams, err := p.streams()
	if err != nil {
		return nil, nil, err
	}
	w := river.NewWorkers()
	jobs.AddWebhooks(w, jobs.Webhooks{Service: s.webhooks, Deliverer: s.deliverer})
	turns = jobs.AddSchedules(w, run.Runner{Store: s.schedules, Streams: streams, Webhook: s.outbound, Now: p.now})
	payments, err := p.payments(s, config.Store{DB: p.pool})
	if err != nil {
		return nil, nil, err
	}
	jobs.AddPayments(w, payments)
	media.AddWorkers(w, product)
	queues := media.Queues()
	maps.Copy(queues, jobs.WebhookQueues())
	maps.Copy(queues, jobs.ScheduleQueues())
	maps.Copy(queues, jobs.PaymentQueues())
	r, err = river.NewClient(riverpgxv5.New(p.pool), &river.Config{
		Workers: w, Queues: queues, JobTimeout: jobTimeout, RescueStuckJobsAfter: rescueAfter, Logger: slog.Default(),
		Middleware: append(p.tracer.Jobs(), telemetry.NewJobs(p.metrics)),
		// What became of a job is in the tables of its service; thousands a second
		// would fill River's.
		CompletedJobRetentionPeriod: 5 * time.Minute,
	})
	return r, turns, err
}

// streams is how schedules act on the product. With the platform's secret it speaks
// as edges of before did, which products of before understand; with the product's
// own, as edges do.
func (e Environment) streams() (c product.Client, err error) {
	products, err := e.upstream("SLUICE_MEDIA")
	if err != nil {
		return c, err
	}
	s, err := e.identities()
	if err != nil {
		return c, err
	}
	c = product.Client{BaseURL: "http://" + products[0], HTTP: product.FirstOf(products), Now: e.now}
	for _, own := range s.own {
		if own.Product == mediaProduct {
			c.Product, c.Secret = own.Product, own.Key
			return c, nil
		}
	}
	if len(s.platform) == 0 {
		return c, errors.New("SLUICE_IDENTITY_SECRETS has no secret of the product media: `sluice secrets product media` shows it")
	}
	c.Secret = s.platform[0]
	return c, nil
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
