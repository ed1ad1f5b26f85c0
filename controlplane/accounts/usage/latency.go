package usage

import "math"

// Latency tells how long requests took, from their first header to their end, in
// milliseconds. It is read off a histogram whose buckets double, so a value is
// right within a factor of two.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// latencyFrom reads a histogram of meter.Buckets; nil when it is empty.
func latencyFrom(buckets []int64) *Latency {
	total := int64(0)
	for _, n := range buckets {
		total += n
	}
	if total == 0 {
		return nil
	}
	return &Latency{P50: quantile(buckets, total, 0.5), P90: quantile(buckets, total, 0.9), P99: quantile(buckets, total, 0.99)}
}

// quantile finds the bucket of the request that a share q of all are not slower
// than, and takes requests to lie evenly within it.
func quantile(buckets []int64, total int64, q float64) float64 {
	rank, before := math.Ceil(q*float64(total)), 0.0
	for i, n := range buckets {
		if before+float64(n) >= rank {
			low, high := bounds(i)
			return math.Round(100*(low+(high-low)*(rank-before)/float64(n))) / 100
		}
		before += float64(n)
	}
	return 0
}

// bounds are those of bucket i, in milliseconds. The last has no upper one: it
// is given one like the others.
func bounds(i int) (low, high float64) {
	if i == 0 {
		return 0, 1
	}
	return math.Ldexp(1, i-1), math.Ldexp(1, i)
}
