package meter

import (
	"encoding/binary"
	"math"
)

// Parse reads a batch that Append wrote. ok is false for anything else: a batch
// that is cut short, has bytes behind its end, or counts that cannot be.
func Parse(b []byte) (batch Batch, ok bool) {
	if len(b) == 0 || len(b) > MaxBatch || b[0] != form {
		return Batch{}, false
	}
	r := reader{b: b[1:]}
	batch.At = int64(r.number(math.MaxInt32 * 4))
	routes := make([]Route, r.count(maxCounts))
	for i := range routes {
		routes[i] = Route{r.text(), r.text()}
	}
	batch.Counts = make([]Count, r.count(maxCounts))
	for i := range batch.Counts {
		batch.Counts[i] = r.counts(routes)
	}
	batch.Uses = make([]Use, r.count(maxUses))
	for i := range batch.Uses {
		batch.Uses[i] = Use{Key: r.fixed(), At: int64(r.number(math.MaxInt32 * 4)), Address: r.text()}
	}
	if r.bad || len(r.b) > 0 {
		return Batch{}, false
	}
	return batch, true
}

// reader takes values off the front of b. Once one does not fit it is bad and
// gives zeros only.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.bad, r.b = true, nil }

// number reads a number of at most most.
func (r *reader) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads how many values follow, at most most and at most the bytes left.
func (r *reader) count(most int) uint64 { return r.number(uint64(min(most, len(r.b)))) }

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) text() string { return string(r.bytes(r.number(maxText))) }

func (r *reader) fixed() uint64 {
	if v := r.bytes(8); len(v) == 8 {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

// counts reads one Count. Its buckets must add up to its requests.
func (r *reader) counts(routes []Route) Count {
	c := Count{Account: r.fixed(), Key: r.fixed()}
	route := r.number(maxCounts)
	class := r.bytes(1)
	c.Requests, c.Refused = r.number(math.MaxUint32), r.number(math.MaxUint32)
	c.In, c.Out = r.number(math.MaxInt64), r.number(math.MaxInt64)
	mask := r.number(1<<Buckets - 1)
	sum := uint64(0)
	for i := range c.Latency {
		if mask&(1<<i) != 0 {
			c.Latency[i] = uint32(r.number(math.MaxUint32))
			sum += uint64(c.Latency[i])
		}
	}
	if r.bad || route >= uint64(len(routes)) || class[0] >= Classes || c.Requests == 0 || sum != c.Requests || c.Refused > c.Requests {
		r.fail()
		return Count{}
	}
	c.Route, c.Class = routes[route], class[0]
	return c
}
