// Package traffic counts requests for metrics: by route, method, class of status and
// reason of refusal, with histograms of how long they took. A worker of an edge adds
// each request to a Table in its own memory and empties it into a batch twice a
// second; the edge's agent sums the batches up for whoever scrapes it. No account,
// key, address or path is in any of it. It calls no host and reads no clock.
//
// Package meter counts the same requests for usage: by account and key, and until the
// control plane has them, however long that takes. Metrics must not wait for a control
// plane, and want other things counted.
package traffic

import (
	"slices"
	"time"

	"sluice.dev/sluice/filters/limits/meter"
)

// Bounds are the upper bounds of the buckets of a histogram, in microseconds; one more
// bucket holds everything longer. From 1 ms to 30 s each is at most 5/3 of the one
// before, and what people promise (100 ms, 300 ms, 1 s) is the bound of one.
var Bounds = [...]uint64{
	500, 1_000, 1_500, 2_000, 3_000, 5_000, 7_500,
	10_000, 15_000, 20_000, 30_000, 50_000, 75_000,
	100_000, 150_000, 200_000, 300_000, 500_000, 750_000,
	1_000_000, 1_500_000, 2_000_000, 3_000_000, 5_000_000, 7_500_000,
	10_000_000, 15_000_000, 20_000_000, 30_000_000, 60_000_000,
}

// Buckets is how many buckets a histogram has.
const Buckets = len(Bounds) + 1

// Bucket is the bucket of a duration in microseconds.
func Bucket(micros uint64) int {
	low, high := 0, len(Bounds)
	for low < high {
		if at := (low + high) / 2; micros <= Bounds[at] {
			high = at
		} else {
			low = at + 1
		}
	}
	return low
}

// micros is d in microseconds. A clock that went backwards counts as no time at all.
func micros(d time.Duration) uint64 { return uint64(max(0, d)) / 1000 }

// methods are the methods that are told apart; all others are the last. The list only
// grows at its end but one: batches have places in it.
var methods = [...]string{"", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"}

// MethodNumber is the number of a method; 0 for "", which is one that nobody knows.
func MethodNumber(name string) uint8 {
	if i := slices.Index(methods[:], name); i >= 0 {
		return uint8(i)
	}
	return uint8(len(methods) - 1)
}

// Request is one request when it is over.
type Request struct {
	In, Out  uint64 // bytes of bodies
	Took     time.Duration
	Upstream time.Duration // until the product's answer began; 0: it did not answer
}

// Histogram counts durations.
type Histogram struct {
	Micros  uint64 // sum, in microseconds
	Buckets [Buckets]uint32
}

func (h *Histogram) add(d time.Duration) {
	n := micros(d)
	h.Micros += n
	h.Buckets[Bucket(n)]++
}

// Count is how many durations were counted.
func (h *Histogram) Count() (n uint64) {
	for _, b := range h.Buckets {
		n += uint64(b)
	}
	return n
}

// Counts are the requests of one Key.
type Counts struct {
	Requests, In, Out uint64
	Took              Histogram // whole requests
	Upstream          Histogram // until the product's answer began, of those that it answered
	Open              uint64    // milliseconds for which connections were open, of routes that are watched
}

// addPart adds a part of a connection that is open.
func (c *Counts) addPart(p meter.Part) {
	c.In += p.In
	c.Out += p.Out
	c.Open += uint64(max(0, p.Open) / time.Millisecond)
}

// parts reports whether c holds parts of connections.
func (c *Counts) parts() bool { return c.Open > 0 || c.Requests == 0 }

func (c *Counts) add(r Request) {
	c.Requests++
	c.In += r.In
	c.Out += r.Out
	c.Took.add(r.Took)
	if r.Upstream > 0 {
		c.Upstream.add(r.Upstream)
	}
}
