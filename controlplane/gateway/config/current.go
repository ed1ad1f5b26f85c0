package config

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Current keeps the newest version at hand for those who ask often. It is at
// most Every behind, and goes on with the last one while the database is away.
type Current struct {
	Store Store
	Every time.Duration    // 0: 1 s
	Now   func() time.Time // nil: time.Now

	mu     sync.Mutex
	last   Version
	looked time.Time
}

// Get returns the newest version. It fails when there is none yet, or none has
// been read and the database is away.
func (c *Current) Get(ctx context.Context) (Version, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, every := c.Now, c.Every
	if now == nil {
		now = time.Now
	}
	if every == 0 {
		every = time.Second
	}
	if c.last.Number != 0 && now().Sub(c.looked) < every {
		return c.last, nil
	}
	v, err := c.newer(ctx)
	if err != nil && c.last.Number == 0 {
		return Version{}, err
	}
	if err == nil {
		c.last = v
	}
	c.looked = now() // after the look: while the database is slow, those who wait here do not look one after the other
	return c.last, nil
}

// newer reads the newest version, unless it is the last one that was read.
func (c *Current) newer(ctx context.Context) (Version, error) {
	var number int64
	err := c.Store.DB.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM config_versions`).Scan(&number)
	if err != nil {
		return Version{}, fmt.Errorf("look for a newer configuration: %w", err)
	}
	if number != 0 && number == c.last.Number {
		return c.last, nil
	}
	return c.Store.Latest(ctx)
}
