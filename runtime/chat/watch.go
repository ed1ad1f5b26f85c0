package chat

import (
	"context"
	"time"
)

// watch starts the timer that looks after a silent stream: it sends comments so
// that nothing on the way takes the connection for dead, and gives up on a
// provider that is silent for too long.
func (r *relay) watch(ctx context.Context) {
	r.last.Store(time.Now().UnixNano())
	ready := make(chan struct{})
	r.timer = time.AfterFunc(r.keepAlive, func() {
		<-ready // the callback may come before r.timer is set
		r.tick(ctx)
	})
	close(ready)
}

// tick runs when the provider may have been silent for keepAlive.
func (r *relay) tick(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	// The timer is not moved for every chunk, which would cost more than the
	// chunk: it finds out here that the provider spoke meanwhile.
	silence := time.Since(time.Unix(0, r.last.Load()))
	switch {
	case silence < r.keepAlive:
		r.timer.Reset(r.keepAlive - silence)
		return
	case r.finishing.Load():
		r.cancel(errLinger)
		return
	case silence >= r.idle:
		r.cancel(errIdle)
		return
	}
	if err := r.out.KeepAlive(); err != nil {
		r.cancel(err)
		return
	}
	r.timer.Reset(r.keepAlive)
}
