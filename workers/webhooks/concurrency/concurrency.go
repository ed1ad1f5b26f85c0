// Package concurrency bounds how many requests run at once to each endpoint, so
// that one slow receiver does not delay the others. It counts, in this process,
// what is under way to each endpoint, and tells workers whether to make a request
// now, later, or in the lane of slow endpoints.
//
// An endpoint starts with a few requests at a time and earns more with each
// quick answer. One slow answer, or a request that has been under way for too
// long, moves it to the slow lane: there it has few requests at a time, and
// shares the lane's workers with other slow endpoints only. Quick answers bring
// it back.
package concurrency

import (
	"context"
	"sync"
	"time"
)

// Lane is where a job was found.
type Lane int

// The lanes.
const (
	Fast Lane = iota
	Slow
)

// Verdict says what to do with a job.
type Verdict int

// The verdicts.
const (
	Go     Verdict = iota // make the request, then call Permit.Done
	Divert                // move the job to the slow lane
	Later                 // leave it in the slow lane and ask again after Decision.Wait
)

// Limits of an endpoint.
const (
	startLimit  = 4                // requests at a time that a new endpoint gets
	slowLimit   = 2                // and one in the slow lane
	maxWaiting  = 64               // jobs in the fast lane that may wait for their turn
	slowAnswer  = time.Second      // an answer that takes longer is slow
	maxWait     = time.Second      // how long a job may wait in the fast lane
	recoveries  = 3                // quick answers that bring an endpoint back
	maxLater    = 60 * time.Second // bound of Decision.Wait
	minGap      = time.Millisecond // least time between two jobs that come back
	forgetAfter = 10 * time.Minute // an idle endpoint is new again
)

// Decision is a verdict with what belongs to it.
type Decision struct {
	Verdict Verdict
	Wait    time.Duration // for Later
	Permit  *Permit       // for Go
}

// Limiter keeps the counts. The zero value is not usable: see New.
type Limiter struct {
	now func() time.Time

	mu        sync.Mutex
	endpoints map[string]*endpoint
	swept     time.Time
}

// endpoint is what is known of one, in this process. It is never written down:
// a new process learns it anew within a few answers.
type endpoint struct {
	limit    int // requests at a time in the fast lane
	inFlight map[*Permit]time.Time
	waiting  int
	freed    chan struct{} // closed, and replaced, when something changes
	slow     bool
	quick    int           // quick answers in a row while slow
	typical  time.Duration // how long an answer takes
	slowFree time.Time     // when the slow lane has its next place
	used     time.Time
}

// New returns a Limiter; now is the clock, nil: time.Now.
func New(now func() time.Time) *Limiter {
	if now == nil {
		now = time.Now
	}
	return &Limiter{now: now, endpoints: map[string]*endpoint{}}
}

// Ask decides about a job for endpoint id that was found in lane. In the fast
// lane it may wait for up to a second until the endpoint has a place, or until
// ctx ends.
func (l *Limiter) Ask(ctx context.Context, id string, lane Lane) Decision {
	if lane == Slow {
		return l.askSlow(id)
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	d, changed := l.askFast(id, false)
	for changed != nil {
		select {
		case <-changed:
			d, changed = l.askFast(id, true)
		case <-timer.C:
			l.leave(id)
			return Decision{Verdict: Divert}
		case <-ctx.Done():
			l.leave(id)
			return Decision{Verdict: Divert}
		}
	}
	return d
}

// askFast decides at once, or returns a channel that is closed when it is worth
// asking again; the caller then counts as waiting.
func (l *Limiter) askFast(id string, waits bool) (Decision, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	e := l.get(id, now)
	if waits {
		e.waiting--
	}
	switch {
	case e.slow || e.hangs(now):
		return Decision{Verdict: Divert}, nil
	case len(e.inFlight) < e.limit:
		return Decision{Permit: l.admit(id, e, now)}, nil
	case e.waiting >= max(maxWaiting, e.limit):
		return Decision{Verdict: Divert}, nil
	}
	e.waiting++
	return Decision{}, e.freed
}

// leave takes a job off the waiting ones that has given up.
func (l *Limiter) leave(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.get(id, l.now()).waiting--
}

// askSlow gives places one after another: a job that finds none is told when,
// at the endpoint's present speed, its own will be free.
func (l *Limiter) askSlow(id string) Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	e := l.get(id, now)
	if len(e.inFlight) < e.places() {
		return Decision{Permit: l.admit(id, e, now)}
	}
	gap := max(e.typical/time.Duration(e.places()), minGap)
	if e.slowFree.Before(now) {
		e.slowFree = now
	}
	e.slowFree = e.slowFree.Add(gap)
	if e.slowFree.Sub(now) > maxLater {
		e.slowFree = now.Add(maxLater)
	}
	return Decision{Verdict: Later, Wait: e.slowFree.Sub(now)}
}

// places is how many requests at a time the slow lane makes to an endpoint. One
// that is not slow has jobs there because it has more than it can take at once.
func (e *endpoint) places() int {
	if e.slow {
		return slowLimit
	}
	return max(e.limit, slowLimit)
}

// get returns the endpoint, a new one if it is not known. l.mu is held.
func (l *Limiter) get(id string, now time.Time) *endpoint {
	if now.Sub(l.swept) > forgetAfter {
		l.sweep(now)
	}
	e := l.endpoints[id]
	if e == nil {
		e = &endpoint{limit: startLimit, inFlight: map[*Permit]time.Time{}, freed: make(chan struct{})}
		l.endpoints[id] = e
	}
	e.used = now
	return e
}

// sweep forgets endpoints that have been idle for long, so that the map does not
// grow with every endpoint that ever was. l.mu is held.
func (l *Limiter) sweep(now time.Time) {
	l.swept = now
	for id, e := range l.endpoints {
		if len(e.inFlight) == 0 && e.waiting == 0 && now.Sub(e.used) > forgetAfter {
			delete(l.endpoints, id)
		}
	}
}

// hangs says whether a request has been under way for too long already.
func (e *endpoint) hangs(now time.Time) bool {
	for _, since := range e.inFlight {
		if now.Sub(since) > slowAnswer {
			return true
		}
	}
	return false
}

// wake lets the waiting jobs ask again. The limiter's mu is held.
func (e *endpoint) wake() {
	close(e.freed)
	e.freed = make(chan struct{})
}
