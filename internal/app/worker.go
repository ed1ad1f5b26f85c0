package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts/billing/invoicing"
	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/process/telemetry"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/jobs"
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
	all, err := p.hasAll()
	if err != nil {
		return err
	}
	loops := []func(context.Context){
		jobs.WebhookUpkeep{Deliverer: s.deliverer}.Run,
		jobs.Metering{Store: usage.Store{DB: p.pool}, Events: s.webhooks}.Run,
		jobs.Housekeeping{DB: p.pool, Sessions: users, Apps: p.oauth(p.pool, users)}.Run,
	}
	money, err := p.billingProvider()
	if err != nil {
		return err
	}
	work := river.NewWorkers()
	jobs.AddWebhooks(work, jobs.Webhooks{Service: s.webhooks, Deliverer: s.deliverer})
	jobs.AddBilling(work, invoicing.Store{DB: p.pool, Prices: p.prices, Provider: money, Now: p.now})
	queues := jobs.WebhookQueues()
	maps.Copy(queues, jobs.BillingQueues())
	if all {
		more, err := p.productJobs(ctx, s, work, queues)
		if err != nil {
			return err
		}
		loops = append(loops, more...)
	}
	driver, closeDriver, err := p.driver(ctx)
	if err != nil {
		return err
	}
	defer closeDriver()
	r, err := p.jobs(driver, work, queues)
	if err != nil {
		return err
	}
	loops = append(loops, jobs.DueJobs{DB: p.pool, Queues: queues}.Run)
	if err := r.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range loops {
		g.Go(func() error { run(ctx); return nil })
	}
	alive := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		httpapi.JSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	g.Go(func() error {
		return serve(ctx, atOnce, endpoint{name: "worker", addr: p.Get("SLUICE_WORKER_LISTEN"), handler: telemetry.Beside(alive, p.metrics)})
	})
	return errors.Join(g.Wait(), stopJobs(context.WithoutCancel(ctx), r))
}

// productJobs adds the jobs of schedules, payments and media, and returns the loops
// beside them.
func (p *process) productJobs(ctx context.Context, s services, work *river.Workers, queues map[string]river.QueueConfig) ([]func(context.Context), error) {
	product, err := p.media(ctx, s)
	if err != nil {
		return nil, err
	}
	streams, err := p.streams()
	if err != nil {
		return nil, err
	}
	payments, err := p.payments(s, config.Store{DB: p.pool})
	if err != nil {
		return nil, err
	}
	turns := jobs.AddSchedules(work, run.Runner{Store: s.schedules, Streams: streams, Webhook: s.outbound, Now: p.now})
	jobs.AddPayments(work, payments)
	media.AddWorkers(work, product)
	for _, more := range []map[string]river.QueueConfig{media.Queues(), jobs.ScheduleQueues(), jobs.PaymentQueues()} {
		maps.Copy(queues, more)
	}
	return []func(context.Context){
		jobs.ScheduleLoop{Service: s.schedules, Turns: turns, Fired: jobs.NewScheduleMetrics(p.metrics).Observe}.Run,
		media.NewUpkeep(product).Run,
	}, nil
}

// driver is River's way to the database: the pool of the process, and past a pooler
// for its listener, where there is one.
func (p *process) driver(ctx context.Context) (d riverdriver.Driver[pgx.Tx], closes func(), err error) {
	if p.Get(directVariable) == "" {
		return riverpgxv5.New(p.pool), func() {}, nil
	}
	url, err := p.DirectURL()
	if err != nil {
		return nil, nil, err
	}
	direct, err := postgres.Open(ctx, postgres.Config{URL: url, MaxConns: 1, Name: "sluice worker session"})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", directVariable, err)
	}
	return pastPooler{riverpgxv5.New(p.pool), riverpgxv5.New(direct)}, direct.Close, nil
}

// pastPooler is River's driver with a listener from another pool.
type pastPooler struct {
	*riverpgxv5.Driver
	direct *riverpgxv5.Driver
}

// GetListener makes a listener that takes a connection out of the other pool.
func (d pastPooler) GetListener(p *riverdriver.GetListenenerParams) riverdriver.Listener {
	return d.direct.GetListener(p)
}

// jobs is the client that works off the queues.
func (p *process) jobs(driver riverdriver.Driver[pgx.Tx], work *river.Workers, queues map[string]river.QueueConfig) (*river.Client[pgx.Tx], error) {
	return river.NewClient(driver, &river.Config{
		Workers: work, Queues: jobs.Unpolled(queues), PeriodicJobs: jobs.BillingRounds(), JobTimeout: jobTimeout, RescueStuckJobsAfter: rescueAfter, Logger: slog.Default(),
		Middleware: append(p.tracer.Jobs(), telemetry.NewJobs(p.metrics)),
		// What became of a job is in the tables of its service; thousands a second
		// would fill River's.
		CompletedJobRetentionPeriod: 5 * time.Minute,
		ReindexerIndexNames:         slices.DeleteFunc(river.ReindexerIndexNamesDefault(), migrations.Unread),
	})
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
