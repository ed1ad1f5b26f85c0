package concurrency

import "time"

// Permit is the right to make one request. Done must be called.
type Permit struct {
	limiter  *Limiter
	endpoint string
}

// admit counts a request as under way. l.mu is held.
func (l *Limiter) admit(id string, e *endpoint, now time.Time) *Permit {
	permit := &Permit{l, id}
	e.inFlight[permit] = now
	return permit
}

// Done gives the place back. took is how long the request took, 0 if none was
// made; most is how many requests at a time the endpoint may get at all, 0 if
// that is not known.
func (t *Permit) Done(took time.Duration, most int) {
	l := t.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.endpoints[t.endpoint]
	delete(e.inFlight, t)
	e.learn(took)
	switch {
	case took >= slowAnswer:
		e.slow, e.quick, e.limit = true, 0, startLimit
	case took > 0 && e.slow:
		if e.quick++; e.quick >= recoveries {
			e.slow, e.quick, e.slowFree = false, 0, time.Time{}
		}
	case took > 0 && e.limit < most:
		e.limit++
	}
	if most > 0 {
		e.limit = min(e.limit, most)
	}
	e.wake()
}

// learn keeps how long an answer takes: the last slow one, or an average of the
// quick ones in which each counts for an eighth.
func (e *endpoint) learn(took time.Duration) {
	switch {
	case took == 0:
	case took >= slowAnswer || e.typical == 0 || e.typical >= slowAnswer:
		e.typical = took
	default:
		e.typical += (took - e.typical) / 8
	}
}
