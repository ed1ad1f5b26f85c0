package main

import (
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// shares is what strict limits go by, as this worker last read it.
type shares struct {
	sharedlimit.Shares
	read int64 // when, in unix milliseconds
}

// takeStrict counts a request in a window whose limit is strict: by what this edge may
// use of it whatever other edges do.
func (e *env) takeStrict(k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, now int64) ratelimit.Result {
	if since := e.millis - e.shares.read; since < 0 || since >= sharedlimit.ReadMillis {
		e.shares = shares{e.Shares(), e.millis}
	}
	f := e.fleet.Fleet(e.millis)
	f.Cut = false // what was last heard of the others counts, however old it is
	own := e.shares.Among(l, e.millis)
	r := wasmhost.Take(e.requests, k, id, own, f, now)
	if r.Limit = l.PerMinute; own.PerMinute == 0 && !r.OK { // it may have a share in a moment
		r.Reset, r.RetryAfter = now+1, 1
	}
	return r
}
