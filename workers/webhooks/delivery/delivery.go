// Package delivery makes the attempts of webhook deliveries: it opens an
// attempt in the log, makes the request, and commits the result together with
// what follows from it.
//
// Nothing here holds a database connection while a receiver is waited for. The
// two writes of an attempt are coalesced over all attempts that are under way,
// so that thousands a second need few transactions.
package delivery

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"sluice.dev/sluice/platform/limits/coalesce"
	"sluice.dev/sluice/platform/process/telemetry/traces"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/retry"
	"sluice.dev/sluice/workers/webhooks/sender"
)

// Config says what a Deliverer works with.
type Config struct {
	DB      *pgxpool.Pool     // required
	Service *webhooks.Service // required: emits the events about failures, opens secrets
	Client  sender.Client     // required: the guarded client
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Schedule is what follows a failure where the subscription says nothing;
	// nil: retry.Standard.
	Schedule []time.Duration
	// Random gives numbers in [0, 1) for jitter; nil: math/rand.
	Random func() float64
	// StoreTimeout bounds each write, repetitions included; 0: 5 s.
	StoreTimeout time.Duration
	Metrics      prometheus.Registerer // nil: not registered
	Log          *slog.Logger          // nil: slog.Default
}

// Deliverer makes attempts. It is safe for use by many goroutines.
type Deliverer struct {
	Config
	opening coalesce.Group[claim, opened]
	closing coalesce.Group[closed, struct{}]
	moving  coalesce.Group[int64, struct{}]
	behind  coalesce.Group[int64, struct{}]
	metrics metrics
}

// New returns a Deliverer; it starts nothing.
func New(c Config) *Deliverer {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Schedule == nil {
		c.Schedule = retry.Standard
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	c.StoreTimeout = cmp.Or(c.StoreTimeout, 5*time.Second)
	c.Log = cmp.Or(c.Log, slog.Default())
	d := &Deliverer{Config: c, metrics: newMetrics(c.Metrics)}
	d.opening = coalesce.Group[claim, opened]{Do: d.openAll, Max: 500, Parallel: 2, Timeout: c.StoreTimeout, Separate: notTransient}
	d.closing = coalesce.Group[closed, struct{}]{Do: d.closeAll, Max: 500, Parallel: 2, Timeout: c.StoreTimeout, Separate: notTransient}
	d.opening.Account = func(c claim) string { return c.of }
	d.closing.Account = func(c closed) string { return c.account }
	d.moving = coalesce.Group[int64, struct{}]{Do: d.divertAll, Max: 1000, Parallel: 1, Timeout: c.StoreTimeout, Separate: notTransient}
	d.behind = coalesce.Group[int64, struct{}]{Do: d.behindAll, Max: 1000, Parallel: 1, Timeout: c.StoreTimeout, Separate: notTransient}
	return d
}

// Result says what came of Attempt.
type Result struct {
	Made     bool          // a request was made, and its result is stored
	Wait     time.Duration // if not zero: nothing was done, ask again after it
	OK       bool          // the receiver took the event
	Duration time.Duration // of the request
	Most     int           // requests at a time that the endpoint may get; 0: not known
}

// Attempt makes the attempt that a job asks for, or nothing if the job is out
// of date. An error means that the database was not reached; the attempt may
// have been made, and is then logged as interrupted when it is made again.
func (d *Deliverer) Attempt(ctx context.Context, a webhooks.DeliveryArgs) (Result, error) {
	o, err := d.opening.Call(ctx, claim{a.Delivery, a.Generation, a.Account})
	if err != nil || o.verdict != goAhead {
		return Result{Wait: o.wait, Most: o.most}, err
	}
	// What is begun is ended even if the worker is being stopped: both the request and the writing are bounded.
	ctx = context.WithoutCancel(ctx)
	ctx, span := traces.Start(ctx, "webhook attempt", trace.SpanKindClient, attribute.String("sluice.webhook", o.subscription),
		attribute.String("sluice.event", o.eventID), attribute.Int("sluice.attempt", o.number), attribute.String("server.address", host(o.url)))
	defer span.End()
	r := sender.Send(ctx, d.Client, sender.Request{
		URL: o.url, EventID: o.eventID, Body: o.body, Secrets: o.secrets, At: o.startedAt,
	}, d.Now)
	d.metrics.observe(o, r)
	span.SetAttributes(attribute.Int("http.response.status_code", r.StatusCode))
	if !r.OK() {
		span.SetStatus(codes.Error, r.Error)
	}
	_, err = d.closing.Call(ctx, closed{opened: o, response: r, at: d.Now(), span: trace.SpanContextFromContext(ctx)})
	return Result{Made: true, OK: r.OK(), Duration: r.Duration, Most: o.most}, err
}

// host is whom a URL leads to, without what else a customer has put into it.
func host(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
