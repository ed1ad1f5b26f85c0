package jobs

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/workers/schedules"
)

// ScheduleLoop makes due runs into executions. Any number of processes may run
// one: they share the work row by row.
type ScheduleLoop struct {
	Service *schedules.Service
	// Poll is the longest pause between two looks for due schedules, and so the
	// greatest delay of a schedule that was created or changed to be due within
	// it; 0: 50 ms, schedules.Ahead at most. Known due times are waited for exactly.
	Poll time.Duration
	// TakeOver is the pause between two looks for lost executions; 0: 500 ms.
	TakeOver time.Duration
	// Prune is the pause between two prunings; 0: 1 hour.
	Prune time.Duration
	// Seal is the pause between two looks for headers that are to be sealed; 0: 1
	// minute.
	Seal time.Duration
	// Turns says whose executions have to wait; nil: nobody's. Due schedules of these
	// accounts are claimed together, once a second, so that many of them cost others
	// little.
	Turns schedules.Turns
	// Fired is told of every claim that found something, by several goroutines at
	// a time; nil: nobody.
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
	parts.Go(func() { l.repeat(ctx, l.fireBehind) })
	parts.Go(func() { l.repeat(ctx, l.takeOver) })
	parts.Go(func() { l.repeat(ctx, l.prune) })
	parts.Go(func() { l.repeat(ctx, l.seal) })
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
	fired, err := l.fireAll(ctx, false)
	if err != nil {
		return 0, err
	}
	pause := min(cmp.Or(l.Poll, 50*time.Millisecond), schedules.Ahead)
	if !fired.Next.IsZero() {
		pause = min(pause, max(0, fired.Next.Sub(l.Service.Now())))
	}
	return max(pause, time.Millisecond), nil
}

// behindPause is the time between two claims of schedules of accounts whose
// executions have to wait.
const behindPause = time.Second

func (l ScheduleLoop) fireBehind(ctx context.Context) (time.Duration, error) {
	_, err := l.fireAll(ctx, true)
	return behindPause, err
}

// fireAll claims what is due: of the accounts that are behind, or of the others.
func (l ScheduleLoop) fireAll(ctx context.Context, behind bool) (schedules.Fired, error) {
	fired, err := l.claim(ctx, behind)
	if err == nil && fired.Full {
		fired, err = l.burst(ctx, behind)
	}
	return fired, err
}

// claim takes one batch of due schedules.
func (l ScheduleLoop) claim(ctx context.Context, behind bool) (schedules.Fired, error) {
	fired, err := l.Service.FireDue(ctx, l.Turns, behind)
	if err == nil && fired.Schedules > 0 && l.Fired != nil {
		l.Fired(fired)
	}
	return fired, err
}

// burst takes batches, several at a time, until none is full. With many
// schedules due at once the executions that have begun would otherwise keep
// the others from being made.
func (l ScheduleLoop) burst(ctx context.Context, behind bool) (last schedules.Fired, err error) {
	group, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	for range burstClaims {
		group.Go(func() error {
			for {
				fired, err := l.claim(ctx, behind)
				if err != nil || !fired.Full {
					mu.Lock()
					defer mu.Unlock()
					last = fired
					return err
				}
			}
		})
	}
	return last, group.Wait()
}

// burstClaims is how many batches are claimed at a time when many are due.
const burstClaims = 4

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

func (l ScheduleLoop) seal(ctx context.Context) (time.Duration, error) {
	for {
		more, err := l.Service.SealHeaders(ctx)
		if err != nil || !more {
			return cmp.Or(l.Seal, time.Minute), err
		}
	}
}

func (l ScheduleLoop) log() *slog.Logger { return cmp.Or(l.Log, slog.Default()) }
