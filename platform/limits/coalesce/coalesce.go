// Package coalesce carries out calls in batches: those that arrive while earlier
// ones are under way are carried out together. A call that comes alone
// is carried out at once, so that a quiet system gains no delay and a busy one
// pays the cost of a transaction once for many.
package coalesce

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// Group carries out calls with arguments T and results R. The zero value is not
// usable: set Do.
type Group[T, R any] struct {
	// Do carries out calls; its results are in the order of its arguments. When
	// it fails for several, each is tried alone, so that one bad call spoils no
	// other. The context is the Group's own: no caller's end cuts others short.
	Do func(ctx context.Context, args []T) ([]R, error)
	// Separate says for which errors of Do each call is tried alone; nil: for all.
	Separate func(error) bool
	// Max is the most calls in one Do; 0: 64.
	Max int
	// Parallel is how many Do run at once; 0: 4.
	Parallel int
	// Timeout bounds one Do; 0: 5 seconds.
	Timeout time.Duration

	mu      sync.Mutex
	queue   []call[T, R]
	running int
}

type call[T, R any] struct {
	arg  T
	done chan outcome[R] // holds one, so that nobody waits for a caller that left
}

type outcome[R any] struct {
	result R
	err    error
}

// Call waits for its turn and returns the result for arg. When ctx ends first
// it returns early; whether the call is carried out is then unknown.
func (g *Group[T, R]) Call(ctx context.Context, arg T) (R, error) {
	c := call[T, R]{arg, make(chan outcome[R], 1)}
	g.mu.Lock()
	g.queue = append(g.queue, c)
	if g.running < cmp.Or(g.Parallel, 4) {
		g.running++
		go g.drain()
	}
	g.mu.Unlock()
	select {
	case o := <-c.done:
		return o.result, o.err
	case <-ctx.Done():
		var none R
		return none, ctx.Err()
	}
}

// drain carries out batches until no call is left.
func (g *Group[T, R]) drain() {
	for {
		batch := g.take()
		if batch == nil {
			return
		}
		if g.try(batch) {
			continue
		}
		for i := range batch {
			g.try(batch[i : i+1])
		}
	}
}

// take removes the next batch from the queue. Without one it gives up its
// place.
func (g *Group[T, R]) take() []call[T, R] {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.queue), cmp.Or(g.Max, 64))
	if n == 0 {
		g.running--
		return nil
	}
	batch := g.queue[:n:n]
	g.queue = g.queue[n:]
	return batch
}

// try carries out a batch and tells its callers. False means that nobody was
// told, because each call is to be tried alone.
func (g *Group[T, R]) try(batch []call[T, R]) bool {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(g.Timeout, 5*time.Second))
	defer cancel()
	args := make([]T, len(batch))
	for i, c := range batch {
		args[i] = c.arg
	}
	results, err := g.Do(ctx, args)
	if err == nil && len(results) != len(args) {
		err = fmt.Errorf("%d results for %d calls", len(results), len(args))
	}
	if err != nil && len(batch) > 1 && (g.Separate == nil || g.Separate(err)) {
		return false
	}
	for i, c := range batch {
		o := outcome[R]{err: err}
		if err == nil {
			o.result = results[i]
		}
		c.done <- o
	}
	return true
}
