package postgres

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Clock is the database's clock, which is the platform's: what one process writes
// down another one judges, so that their own clocks must not matter. It looks at
// the database now and then, and in between it counts by the machine's monotonic
// clock, which nobody sets. While the database is away it goes on counting.
type Clock struct {
	read  func(context.Context) (time.Time, error)
	every time.Duration
	last  atomic.Pointer[reading]
}

// reading is what time it was at the database when it was local here.
type reading struct{ there, local time.Time }

// Bounds of looking at the database's clock.
const (
	lookEvery = time.Second     // pause between two looks
	lookFor   = 2 * time.Second // a look that takes longer says nothing
)

// NewClock returns a clock that has looked once, or has the machine's time until
// Run has: a process may start before its database answers.
func NewClock(ctx context.Context, db DB) *Clock {
	c := &Clock{every: lookEvery, read: func(ctx context.Context) (at time.Time, err error) {
		err = db.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&at)
		return at, err
	}}
	c.look(ctx)
	return c
}

// Now is the database's time, in UTC. It may go back when that does.
func (c *Clock) Now() time.Time {
	r := c.last.Load()
	if r == nil {
		return time.Now().UTC()
	}
	return r.there.Add(time.Since(r.local)).UTC()
}

// Run looks at the database's clock until ctx ends.
func (c *Clock) Run(ctx context.Context) {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.look(ctx)
		}
	}
}

// look asks once. An answer tells the time to within half of what it took: one
// that fits what is known changes nothing.
func (c *Clock) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	before := time.Now()
	there, err := c.read(ctx)
	took := time.Since(before)
	if err != nil || took > lookFor {
		return // whoever needs the database says so
	}
	next := &reading{there: there.Add(took / 2).Round(0), local: before.Add(took)}
	off := next.there.Sub(c.Now())
	if r := c.last.Load(); r != nil && off.Abs() <= took/2+time.Millisecond {
		return
	}
	if off.Abs() > time.Second {
		slog.WarnContext(ctx, "this machine's clock is not the database's, which is followed", "off", off.Round(time.Millisecond))
	}
	c.last.Store(next)
}
