package sluice

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// pause waits, or returns the error with which ctx ends.
type pause func(ctx context.Context, d time.Duration) error

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// try counts the tries of one call.
type try struct {
	client *Client
	safe   bool // to be repeated
	method string
	count  int
	unsure bool // an earlier try may have had effect
}

func newTry(c *Client, r call, h http.Header) *try {
	safe := r.method == http.MethodGet || r.method == http.MethodHead || r.method == http.MethodDelete ||
		r.method == http.MethodPost && h.Get("Idempotency-Key") != ""
	return &try{client: c, safe: safe && r.stream == nil, method: r.method}
}

// verdict is what follows from a failure.
type verdict int

const (
	final verdict = iota // the call has failed
	again                // it is to be tried again, now
	gone                 // it has had its effect: what it was to delete is not there
)

// failed takes in the failure of a try, and waits where the call is to be tried again.
func (t *try) failed(ctx context.Context, err error) verdict {
	refused := new(Error)
	answered := errors.As(err, &refused)
	if answered && t.unsure && t.method == http.MethodDelete && refused.Status == http.StatusNotFound {
		return gone
	}
	if !t.safe || t.count >= t.client.retries || ctx.Err() != nil || answered && !refused.passes() {
		return final
	}
	t.unsure = t.unsure || !answered || refused.Status == http.StatusBadGateway || refused.Status == http.StatusGatewayTimeout
	wait := backoff(t.count, refused.RetryAfter)
	if deadline, ok := ctx.Deadline(); refused.RetryAfter > longestWait || ok && time.Until(deadline) < wait {
		return final
	}
	t.count++
	if t.client.pause(ctx, wait) != nil {
		return final
	}
	return again
}

// passes reports whether the same request may succeed a little later.
func (e *Error) passes() bool {
	// The first try of a POST, whose answer was lost, is still under way.
	underWay := e.Status == http.StatusConflict && e.RetryAfter > 0
	return underWay || slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, e.Status)
}

// backoff is how long to wait after a number of retries: no less than the server asks
// for, and a random part more, so that those who were refused together do not come back
// together.
func backoff(retries int, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked + rand.N(min(asked/4, time.Second)+1)
	}
	most := min(500*time.Millisecond<<min(retries, 10), 8*time.Second)
	return most/2 + rand.N(most/2)
}

// retryAfter reads the header of that name: seconds, or a date (RFC 9110, 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(seconds, 0), 1<<30)) * time.Second // some 34 years are never
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
