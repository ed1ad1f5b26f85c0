package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// away is a database whose clock differs from ours, and which takes a while to
// say so.
type away struct {
	off, takes time.Duration
	err        error
}

func (a *away) read(context.Context) (time.Time, error) {
	time.Sleep(a.takes / 2)
	at := time.Now().Add(a.off)
	time.Sleep(a.takes / 2)
	return at, a.err
}

func TestClockFollowsTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var db atomic.Pointer[away]
		db.Store(&away{err: errors.New("it is away")})
		c := &Clock{read: func(ctx context.Context) (time.Time, error) { return db.Load().read(ctx) }, every: time.Second}
		ctx, stop := context.WithCancel(t.Context())
		go c.Run(ctx)
		defer func() { stop(); synctest.Wait() }()
		for _, step := range []struct {
			what string
			db   away
			want time.Duration
		}{
			{"not known yet: ours", away{off: time.Hour, err: errors.New("it is away")}, 0},
			{"it is behind", away{off: -5 * time.Minute}, -5 * time.Minute},
			{"it is away: what was known", away{off: time.Hour, err: errors.New("it is away")}, -5 * time.Minute},
			{"it has jumped", away{off: 30 * time.Second}, 30 * time.Second},
			{"a slow answer tells half of what it takes", away{off: -time.Minute, takes: 400 * time.Millisecond}, -time.Minute},
			{"a slower one that may mean the same changes nothing", away{off: -time.Minute + 300*time.Millisecond, takes: 800 * time.Millisecond}, -time.Minute},
			{"one that takes too long says nothing", away{off: time.Hour, takes: 5 * time.Second}, -time.Minute},
			{"it is right", away{}, 0},
		} {
			db.Store(&step.db)
			time.Sleep(20 * time.Second) // of the bubble's: nobody waits
			if got := time.Until(c.Now()).Round(time.Millisecond); got != step.want {
				t.Errorf("%s: %v off, want %v", step.what, got, step.want)
			}
		}
	})
}
