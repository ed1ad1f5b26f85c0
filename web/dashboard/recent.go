package dashboard

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// readLimit bounds one look at the database for those who wait for it.
const readLimit = 10 * time.Second

// reading is what was read last, and when.
type reading struct {
	at   time.Time
	data any
}

// recent keeps what was read a moment ago, so that many who look at the same cost
// one look at the database. Who looks at something else does not wait for that.
type recent struct {
	mu    sync.Mutex
	kept  map[string]reading
	reads singleflight.Group
}

func newRecent() *recent { return &recent{kept: map[string]reading{}} }

// get returns what is kept under a name if it is younger than life, else what read
// returns, which one caller does for all who ask meanwhile. It fails with ctx's error
// when that ends first; the reading goes on for the others.
func (c *recent) get(ctx context.Context, name string, now time.Time, life time.Duration, read func(context.Context) (any, error)) (any, error) {
	if data, ok := c.young(name, now, life); ok {
		return data, nil
	}
	done := c.reads.DoChan(name, func() (any, error) {
		// Not with the context of whoever happened to come first.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readLimit)
		defer cancel()
		data, err := read(ctx)
		if err == nil {
			c.keep(name, reading{now, data})
		}
		return data, err
	})
	select {
	case r := <-done:
		return r.Val, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// young returns what is kept under a name if it is younger than life.
func (c *recent) young(name string, now time.Time, life time.Duration) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.kept[name]
	return k.data, ok && now.Sub(k.at) < life && !k.at.After(now)
}

// keep keeps r, and drops what is a minute old: accounts come and go.
func (c *recent) keep(name string, r reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for old, k := range c.kept {
		if r.at.Sub(k.at) > time.Minute {
			delete(c.kept, old)
		}
	}
	c.kept[name] = r
}
