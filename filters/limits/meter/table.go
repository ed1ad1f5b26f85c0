// Package meter counts requests for usage and encodes the counts. A worker of an edge adds each request to a
// Table in its own memory, empties it into a batch twice a second, and the
// control plane parses the batches. It calls no host and reads no clock.
package meter

import (
	"math/bits"
	"time"
)

// Buckets is how many buckets a histogram of latency has. Bucket i holds what
// took at most 1 ms × 2^i; the last holds everything longer.
const Buckets = 20

// Classes is how many classes of status there are: 0 for a request that ended
// without an answer, and the hundreds of the status.
const Classes = 6

// Key says which requests are counted together.
type Key struct {
	Account uint64 // number of the account; 0: nobody known
	Key     uint64 // number of the API key; 0: none, such as a token
	Route   uint32 // number given by Names
	Class   uint8  // of the status
}

// Counts are the requests of one Key.
type Counts struct {
	Requests uint64
	Refused  uint64 // those of them that the edge answered itself
	In, Out  uint64 // bytes of bodies
	Latency  [Buckets]uint32
}

// Request is one request when it is over.
type Request struct {
	Refused bool
	In, Out uint64
	Took    time.Duration
}

// add counts r.
func (c *Counts) add(r Request) {
	c.Requests++
	if r.Refused {
		c.Refused++
	}
	c.In += r.In
	c.Out += r.Out
	c.Latency[Bucket(r.Took)]++
}

// Add counts what o has counted.
func (c *Counts) Add(o Counts) {
	c.Requests += o.Requests
	c.Refused += o.Refused
	c.In += o.In
	c.Out += o.Out
	for i, n := range o.Latency {
		c.Latency[i] += n
	}
}

// Bucket is the bucket of a request that took d. A clock that went backwards
// counts as no time at all.
func Bucket(d time.Duration) int {
	if d <= time.Millisecond {
		return 0
	}
	return min(bits.Len64(uint64(d-1)/uint64(time.Millisecond)), Buckets-1)
}

// Class is the class of an HTTP status; 0 when it is none.
func Class(status int) uint8 {
	if status < 100 || status >= 100*Classes {
		return 0
	}
	return uint8(status / 100)
}

// The size of a Table. It has no pointers, so a garbage collection does not look
// into it, and its bytes are the same whatever the traffic.
const (
	slots  = 1024 // a power of two
	most   = slots * 3 / 4
	probes = 16
)

// Table counts requests by Key. What it has no room for it counts under the
// route "" of nobody, so that the totals are always whole.
type Table struct {
	entries []entry
	used    []uint16 // places in entries, in the order in which they were taken
	rest    [Classes]Counts
	dirty   bool
}

type entry struct {
	key    Key
	counts Counts
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{entries: make([]entry, slots), used: make([]uint16, 0, most)}
}

// Add counts a request, and reports whether the table should be emptied now,
// because it has hardly any room left.
func (t *Table) Add(k Key, r Request) (full bool) {
	t.dirty = true
	if c := t.find(k); c != nil {
		c.add(r)
		return len(t.used) >= most
	}
	t.rest[k.Class].add(r)
	return true
}

// Empty reports whether nothing has been counted since the last Reset.
func (t *Table) Empty() bool { return !t.dirty }

// find returns the counts of k; nil when they are not there and have no room.
func (t *Table) find(k Key) *Counts {
	h := k.hash()
	for n := range uint32(probes) {
		e := &t.entries[(h+n)%slots]
		if e.key == k && e.counts.Requests > 0 {
			return &e.counts
		}
		if e.counts.Requests == 0 {
			if len(t.used) == cap(t.used) {
				return nil
			}
			e.key = k
			t.used = append(t.used, uint16((h+n)%slots))
			return &e.counts
		}
	}
	return nil
}

// hash mixes k: accounts and keys are random numbers already.
func (k Key) hash() uint32 {
	x := k.Account ^ bits.RotateLeft64(k.Key, 21) ^ uint64(k.Route)<<8 ^ uint64(k.Class)
	x *= 0x9e3779b97f4a7c15
	return uint32(x >> 40)
}

// Reset forgets everything.
func (t *Table) Reset() {
	for _, i := range t.used {
		t.entries[i] = entry{}
	}
	t.used, t.dirty = t.used[:0], false
	t.rest = [Classes]Counts{}
}

// each calls f for everything that was counted.
func (t *Table) each(f func(Key, *Counts)) {
	for _, i := range t.used {
		f(t.entries[i].key, &t.entries[i].counts)
	}
	for class := range t.rest {
		if t.rest[class].Requests > 0 {
			f(Key{Class: uint8(class)}, &t.rest[class])
		}
	}
}
