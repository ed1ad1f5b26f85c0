// Package clocktest has a clock for tests that stands still until it is moved.
package clocktest

import (
	"sync"
	"time"
)

// Clock may be moved while others read it.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// New returns a clock that stands at now.
func New(now time.Time) *Clock { return &Clock{now: now} }

// Now is where it stands.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set has it stand at now.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// Advance moves it by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
