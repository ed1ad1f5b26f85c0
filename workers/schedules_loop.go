package workers

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"sluice.dev/sluice/controlplane/schedules"
)

// ScheduleLoop makes due runs into executions. Any number of processes may run
// one: they share the work row by row.
type ScheduleLoop struct {
	Service *schedules.Service
	// Poll is the longest pause between two looks for due schedules, and so the
	// greatest delay of a schedule that was created or changed to be due within
	// it; 0: 50 ms. Known due times are waited for exactly.
	Poll time.Duration
	// TakeOver is the pause between two looks for lost executions; 0: 500 ms.
	TakeOver time.Duration
	// Prune is the pause between two prunings; 0: 1 hour.
	Prune time.Duration
	// Fired is told of every claim that found something; nil: nobody.
	Fired func(schedules.Fired)
	// Log; nil: slog.Default.
	Log *slog.Logger
}

// retryPause is how long the loop waits after an error, such as a database that
// restarts.
const retryPause = 100 * time.Millisecond

// Run works until the context ends.
func (l ScheduleLoop) Run(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { l.repeat(ctx, l.fire) })
	parts.Go(func() { l.repeat(ctx, l.takeOver) })
	parts.Go(func() { l.repeat(ctx, l.prune) })
	parts.Wait()
}

// repeat calls a step again and again, each time after the pause that it asks
// for.
func (l ScheduleLoop) repeat(ctx context.Context, step func(context.Context) (time.Duration, error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		pause, err := step(ctx)
		if err != nil && ctx.Err() == nil {
			l.log().Error("schedules", "cause", err)
			pause = retryPause
		}
		timer.Reset(pause)
	}
}

func (l ScheduleLoop) fire(ctx context.Context) (time.Duration, error) {
	fired, err := l.Service.FireDue(ctx)
	if err != nil {
		return 0, err
	}
	if fired.Schedules > 0 && l.Fired != nil {
		l.Fired(fired)
	}
	if fired.Full {
		return 0, nil
	}
	pause := cmp.Or(l.Poll, 50*time.Millisecond)
	if !fired.Next.IsZero() {
		pause = min(pause, max(0, fired.Next.Sub(l.Service.Now())))
	}
	return max(pause, time.Millisecond), nil
}

func (l ScheduleLoop) takeOver(ctx context.Context) (time.Duration, error) {
	_, err := l.Service.TakeOver(ctx)
	return cmp.Or(l.TakeOver, 500*time.Millisecond), err
}

func (l ScheduleLoop) prune(ctx context.Context) (time.Duration, error) {
	for {
		n, err := l.Service.Prune(ctx)
		if err != nil || n == 0 {
			return cmp.Or(l.Prune, time.Hour), err
		}
	}
}

func (l ScheduleLoop) log() *slog.Logger { return cmp.Or(l.Log, slog.Default()) }
