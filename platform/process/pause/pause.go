// Package pause sleeps between two tries of a loop, until a context ends.
package pause

import (
	"context"
	"time"
)

// For waits for d; false if ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
