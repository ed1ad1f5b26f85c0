// Package run carries out executions of schedules: it takes one for an attempt, does what
// the schedule says, and has the outcome recorded. It holds no database
// connection while it waits for others.
package run

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"sluice.dev/sluice/platform/clock"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
	"sluice.dev/sluice/workers/schedules/product"
)

// Store keeps executions; *schedules.Service is one.
type Store interface {
	Begin(ctx context.Context, execution string) (*schedules.Attempt, time.Time, error)
	Retry(ctx context.Context, a schedules.Attempt, at time.Time, result *schedules.Result, logs []string) error
	Finish(ctx context.Context, a schedules.Attempt, o schedules.Outcome) error
	Postpone(ctx context.Context, job int64, execution string, until time.Time) error
}

// Streams acts on streams; product.Client does.
type Streams interface {
	Act(ctx context.Context, by product.Caller, a definition.Action) (product.Outcome, error)
}

// Caller calls customers' addresses; *outbound.Client does.
type Caller interface {
	Do(ctx context.Context, req outbound.Request) (outbound.Result, error)
}

// Runner carries out executions.
type Runner struct {
	Store   Store
	Streams Streams
	Webhook Caller
	Now     func() time.Time // nil: time.Now
	// Jitter returns a number from 0 to 1 that lengthens the wait before a
	// retry; nil: a random one.
	Jitter func() float64
	Log    *slog.Logger // nil: slog.Default
}

// The parts of a lease: the bounds of the stream action and of the webhook call
// leave time to record the outcome.
const (
	actionTimeout  = 2 * time.Second
	webhookTimeout = 5 * time.Second
	recordPause    = 200 * time.Millisecond
)

// Run makes the next attempt of an execution. It returns how long to wait
// before calling it again; 0: never. An error means that the database did not
// take part; calling again is then right, too.
func (r Runner) Run(ctx context.Context, execution string) (time.Duration, error) {
	attempt, due, err := r.Store.Begin(ctx, execution)
	if err != nil {
		return 0, err
	}
	if attempt == nil {
		if due.IsZero() {
			return 0, nil
		}
		return max(due.Sub(r.now()), time.Millisecond), nil
	}
	leased, cancel := context.WithTimeout(ctx, schedules.Lease)
	defer cancel()
	work := &work{Runner: r, attempt: *attempt}
	failure := work.do(leased)
	if failure != nil && failure.transient {
		if delay, ok := attempt.Definition.Retry().Delay(attempt.Failures+1, r.jitter()); ok {
			work.log("trying again in %s", delay.Round(time.Millisecond))
			at := r.now().Add(delay)
			return delay, r.record(leased, func() error { return r.Store.Retry(leased, *attempt, at, work.result, work.logs) })
		}
	}
	outcome := work.outcome(failure)
	return 0, r.record(leased, func() error { return r.Store.Finish(leased, *attempt, outcome) })
}

// record writes an outcome and repeats that until the lease ends: a database
// that restarts must not make the work be done twice.
func (r Runner) record(ctx context.Context, write func() error) error {
	for {
		err := write()
		if err == nil {
			return nil
		}
		r.log().Warn("the outcome of an execution is not recorded yet", "cause", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(recordPause):
		}
	}
}

func (r Runner) now() time.Time { return clock.Or(r.Now) }

func (r Runner) jitter() float64 {
	if r.Jitter != nil {
		return r.Jitter()
	}
	return rand.Float64()
}

func (r Runner) log() *slog.Logger { return cmp.Or(r.Log, slog.Default()) }
