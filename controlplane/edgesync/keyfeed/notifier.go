package keyfeed

import (
	"context"
	"sync"
)

// notifier wakes waiting polls when the feed changes, all of them at once.
type notifier struct {
	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	stopped chan struct{} // closed when run returns
}

func newNotifier() *notifier {
	return &notifier{changed: make(chan struct{}), stopped: make(chan struct{})}
}

// next returns a channel that closes at the next change. Take it before
// reading: a change that comes between both then is not missed.
func (h *notifier) next() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// wake wakes everyone who waits.
func (h *notifier) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// run wakes at what is heard until ctx ends. It must be called once.
func (h *notifier) run(ctx context.Context, heard <-chan struct{}) {
	defer close(h.stopped)
	for {
		select {
		case <-ctx.Done():
			return
		case <-heard:
			h.wake()
		}
	}
}
