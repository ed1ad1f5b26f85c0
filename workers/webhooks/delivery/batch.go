package delivery

import (
	"context"
	"sync"
)

// batch gathers calls that come at the same time and runs them together. It
// waits for nothing: while one run is under way the next one fills, so runs
// are small when there is little to do and large when there is much.
type batch[In, Out any] struct {
	run     func([]In) ([]Out, error) // as many results as inputs, in their order
	maximum int                       // most inputs of a run
	lanes   int                       // most runs at the same time
	blame   func(error) bool          // whether a failure may be one input's fault

	mu      sync.Mutex
	waiting []waiter[In, Out]
	running int
}

// waiter is a call that waits for its result. done has room for it, so that a
// caller who has gone away blocks nobody.
type waiter[In, Out any] struct {
	in   In
	done chan result[Out]
}

// result is what a call gets.
type result[Out any] struct {
	out Out
	err error
}

// do runs in with others and returns its result. When ctx ends first, in may
// still be run.
func (b *batch[In, Out]) do(ctx context.Context, in In) (Out, error) {
	w := waiter[In, Out]{in, make(chan result[Out], 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	if b.running < b.lanes {
		b.running++
		go b.drain()
	}
	b.mu.Unlock()
	select {
	case r := <-w.done:
		return r.out, r.err
	case <-ctx.Done():
		var none Out
		return none, context.Cause(ctx)
	}
}

// drain runs what is waiting until nothing is. It lives only as long as there is
// work, so a batch needs no start and no stop.
func (b *batch[In, Out]) drain() {
	for {
		b.mu.Lock()
		n := min(len(b.waiting), b.maximum)
		if n == 0 {
			b.running--
			b.mu.Unlock()
			return
		}
		now := b.waiting[:n:n]
		b.waiting = append([]waiter[In, Out](nil), b.waiting[n:]...)
		b.mu.Unlock()
		b.answer(now)
	}
}

// answer runs ws; if that fails for a reason that may lie in one of them, each
// by itself, so that it does not take the others down.
func (b *batch[In, Out]) answer(ws []waiter[In, Out]) {
	ins := make([]In, len(ws))
	for i, w := range ws {
		ins[i] = w.in
	}
	outs, err := b.run(ins)
	if err != nil && len(ws) > 1 && b.blame(err) {
		for i := range ws {
			b.answer(ws[i : i+1])
		}
		return
	}
	for i, w := range ws {
		r := result[Out]{err: err}
		if err == nil {
			r.out = outs[i]
		}
		w.done <- r
	}
}
