package meter

import (
	"math"

	"sluice.dev/sluice/filters/host/wire"
)

// Parse reads a batch that Append wrote. ok is false for anything else: a batch
// that is cut short, has bytes behind its end, or counts that cannot be.
//
// It takes time linear in b, of which it looks at no more than MaxBatch bytes,
// and allocates at most 24 bytes for each of them.
func Parse(b []byte) (batch Batch, ok bool) {
	if len(b) == 0 || len(b) > MaxBatch || b[0] != form && b[0] != partsForm {
		return Batch{}, false
	}
	r := reader{wire.NewReader(b[1:])}
	batch.At = int64(r.Number(math.MaxInt32 * 4))
	routes := make([]Route, r.CountOf(maxCounts, routeSize))
	for i := range routes {
		routes[i] = Route{r.text(), r.text()}
	}
	batch.Counts = make([]Count, r.CountOf(maxCounts, countSize))
	for i := range batch.Counts {
		batch.Counts[i] = r.counts(routes, b[0] == partsForm)
	}
	batch.Uses = make([]Use, r.CountOf(maxUses, useSize))
	for i := range batch.Uses {
		batch.Uses[i] = Use{Key: r.Uint64(), At: int64(r.Number(math.MaxInt32 * 4)), Address: r.text()}
	}
	if !r.Done() {
		return Batch{}, false
	}
	return batch, true
}

// The fewest bytes that each of these takes in a batch, and a batch in a parcel.
const (
	routeSize = 2
	countSize = 24
	useSize   = 10
	batchSize = 6
)

// reader reads what a batch is made of.
type reader struct{ wire.Reader }

func (r *reader) text() string { return r.Text(maxText) }

// counts reads one Count. Its buckets must add up to its requests.
func (r *reader) counts(routes []Route, parts bool) Count {
	c := Count{Account: r.Uint64(), Key: r.Uint64()}
	route := r.Number(maxCounts)
	class := r.Bytes(1)
	c.Requests, c.Refused = r.Number(math.MaxUint32), r.Number(math.MaxUint32)
	c.In, c.Out = r.Number(math.MaxInt64), r.Number(math.MaxInt64)
	sum := r.Sparse(c.Latency[:])
	if parts {
		c.Open = r.Number(math.MaxInt64)
	}
	empty := c.Requests == 0 && !parts
	if r.Failed() || route >= uint64(len(routes)) || class[0] >= Classes || empty || sum != c.Requests || c.Refused > c.Requests {
		r.Fail()
		return Count{}
	}
	c.Route, c.Class = routes[route], class[0]
	return c
}
