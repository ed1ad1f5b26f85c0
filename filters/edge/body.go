package main

import (
	"strconv"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/host/wasmhost"
)

// body holds a request's body to its route's limit, and nothing of the body.
type body struct {
	limit uint64 // bytes; 0: any number
	seen  uint64
}

// checkLength refuses a body that says beforehand that it is too large. end: the
// request has none, and costs nothing here.
func (b *body) checkLength(limit uint64, end bool) decision.Decision {
	if end || limit == 0 {
		return decision.Pass
	}
	b.limit = limit
	if n, err := strconv.ParseUint(wasmhost.Header("content-length"), 10, 64); err == nil && n > limit {
		return tooLarge(limit)
	}
	return decision.Pass
}

// addBytes counts n more bytes; it reports whether they are still within the limit.
func (b *body) addBytes(n int) bool {
	b.seen += uint64(n)
	return b.limit == 0 || b.seen <= b.limit
}

func tooLarge(limit uint64) decision.Decision {
	return decision.Decision{Code: decision.TooLarge, Detail: decision.LargeBody(limit)}
}
