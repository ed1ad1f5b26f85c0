// Package meter counts requests for usage and encodes the counts. A worker of an edge adds each request to a
// Table in its own memory, empties it into a batch twice a second, and the
// control plane parses the batches. It calls no host and reads no clock.
package meter

import (
	"math/bits"
	"time"

	"sluice.dev/sluice/filters/limits/slots"
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
	Open     uint64 // milliseconds for which connections were open, of routes that are watched
}

// Part is a part of a connection that is open, and was counted as a request when it opened.
type Part struct {
	In, Out uint64 // bytes
	Open    time.Duration
}

func (c *Counts) addPart(p Part) {
	c.In += p.In
	c.Out += p.Out
	c.Open += uint64(max(0, p.Open) / time.Millisecond)
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
	c.Open += o.Open
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

// size of a Table, in slots: its bytes are the same whatever the traffic.
const size = 1024

// Table counts requests by Key. What it has no room for it counts under the
// route "" of nobody, so that the totals are always whole.
type Table struct {
	counted slots.Table[Key, Counts]
	rest    [Classes]Counts
	dirty   bool
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{counted: slots.New[Key, Counts](size)} }

// Add counts a request, and reports whether the table should be emptied now,
// because it has no room left.
func (t *Table) Add(k Key, r Request) (full bool) {
	t.dirty = true
	if c := t.counted.Find(k); c != nil {
		c.add(r)
		return t.counted.Full()
	}
	t.rest[k.Class].add(r)
	return true
}

// AddPart counts a part of an open connection, as Add does a request.
func (t *Table) AddPart(k Key, p Part) (full bool) {
	t.dirty = true
	if c := t.counted.Find(k); c != nil {
		c.addPart(p)
		return t.counted.Full()
	}
	t.rest[k.Class].addPart(p)
	return true
}

// partial reports whether anything counted is more than requests.
func (t *Table) partial() (yes bool) {
	t.each(func(_ Key, c *Counts) { yes = yes || c.Requests == 0 || c.Open > 0 })
	return yes
}

// Empty reports whether nothing has been counted since the last Reset.
func (t *Table) Empty() bool { return !t.dirty }

// Hash mixes k: accounts and keys are random numbers already.
func (k Key) Hash() uint32 {
	x := k.Account ^ bits.RotateLeft64(k.Key, 21) ^ uint64(k.Route)<<8 ^ uint64(k.Class)
	x *= 0x9e3779b97f4a7c15
	return uint32(x >> 40)
}

// Reset forgets everything.
func (t *Table) Reset() {
	t.counted.Reset()
	t.rest, t.dirty = [Classes]Counts{}, false
}

// each calls f for everything that was counted.
func (t *Table) each(f func(Key, *Counts)) {
	t.counted.Each(f)
	for class := range t.rest {
		if c := &t.rest[class]; c.Requests > 0 || c.Open > 0 || c.In > 0 || c.Out > 0 {
			f(Key{Class: uint8(class)}, &t.rest[class])
		}
	}
}
