// Package retry decides what follows an attempt at a delivery: nothing more,
// another attempt and when, or the end. It knows no clock and no database.
package retry

import "time"

// Standard is the platform's schedule (contract 7.5): how long after each
// failed attempt the next one goes out.
var Standard = []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour}

// MaxRetryAfter bounds what a receiver may ask for with Retry-After.
const MaxRetryAfter = time.Hour

// maxJitter bounds what is added to a delay, so that a retry stays exact to
// the second; maxJitterShare bounds it for short delays.
const (
	maxJitter      = time.Second
	maxJitterShare = 20
)

// State is what has become of a delivery.
type State string

// The states of a delivery after an attempt.
const (
	Succeeded State = "succeeded" // the receiver has it
	Again     State = "pending"   // another attempt follows
	Failed    State = "failed"    // no further attempt: WEBHOOK_001
)

// Outcome is what an attempt came to.
type Outcome struct {
	StatusCode int           // 0: no response
	RetryAfter time.Duration // as asked for by the receiver; 0: not asked
}

// OK says whether the receiver took the event: any 2xx. A redirect is a failure.
func (o Outcome) OK() bool { return o.StatusCode >= 200 && o.StatusCode <= 299 }

// Gone says that the receiver wants nothing more: 410.
func (o Outcome) Gone() bool { return o.StatusCode == 410 }

// Next is what follows.
type Next struct {
	State State
	Delay time.Duration // after the end of the attempt, if State is Again
}

// Decide applies schedule to an attempt that ended with o after failures
// earlier failures. random, in [0, 1), spreads retries: up to a twentieth of
// the delay and one second are added, nothing is ever taken off.
//
// Retry-After can make a delay longer, up to MaxRetryAfter, never shorter. 410
// ends the delivery at once.
func Decide(schedule []time.Duration, failures int, o Outcome, random float64) Next {
	switch {
	case o.OK():
		return Next{State: Succeeded}
	case o.Gone() || failures >= len(schedule):
		return Next{State: Failed}
	}
	delay := max(schedule[failures], min(o.RetryAfter, MaxRetryAfter))
	return Next{State: Again, Delay: delay + jitter(delay, random)}
}

// jitter is what random adds to delay.
func jitter(delay time.Duration, random float64) time.Duration {
	return time.Duration(random * float64(min(delay/maxJitterShare, maxJitter)))
}

// MaxFailing is how long an endpoint may do nothing but fail before it is
// disabled.
const MaxFailing = 5 * 24 * time.Hour

// Disable says whether an endpoint that has only failed since failingSince is
// to be disabled at now.
func Disable(failingSince, now time.Time) bool {
	return !failingSince.IsZero() && now.Sub(failingSince) >= MaxFailing
}
