// Package ratelimit is a sliding window of 60 seconds, exact to one second, in
// a fixed number of bytes. A window is a plain byte slice, because an edge keeps
// it in Envoy's shared data, where all workers take turns by compare-and-swap.
package ratelimit

import "encoding/binary"

// Seconds is the length of the window (spec, "Limits").
const Seconds = 60

// ID says whose window it is: an account and class, or an address.
type ID [16]byte

// AccountID is the ID of an account in a rate class.
func AccountID(account uint64, class uint8) (id ID) {
	binary.LittleEndian.PutUint64(id[:], account)
	id[8], id[9] = 'c', class
	return id
}

// KeyID is the ID of one API key under its account.
func KeyID(key uint64) (id ID) {
	binary.LittleEndian.PutUint64(id[:], key)
	id[8] = 'k'
	return id
}

// Limit is how many requests a window may hold.
type Limit struct {
	PerMinute uint32
	// Burst is how many requests above PerMinute a short burst may use. What it
	// used comes back, a sixtieth a second, only while the window is not full.
	Burst uint32
}

// Result is the state of a window after a request, as the headers show it.
type Result struct {
	OK         bool
	Limit      uint32
	Remaining  uint32
	Reset      int64 // unix seconds at which the oldest counted request leaves
	RetryAfter int   // seconds until a request can pass; 0 when OK
}

// Layout of a window: ID, second of the newest slot, second of the oldest
// counted request, requests counted, burst used (in sixtieths), slots.
const (
	atNewest = 16
	atOldest = 20
	atTotal  = 24
	atBurst  = 28
	atSlots  = 32
	// Size is the length of a window in bytes.
	Size = atSlots + 4*Seconds
)

// Window is Size bytes; see New.
type Window []byte

// New returns an empty window of id.
func New(id ID) Window {
	w := make(Window, Size)
	copy(w, id[:])
	return w
}

// Is reports whether w is a window of id.
func (w Window) Is(id ID) bool { return len(w) == Size && ID(w[:16]) == id }

// Free reports whether nothing in w counts at now any more, so that another may
// have its place.
func (w Window) Free(now int64) bool {
	return len(w) != Size || now-int64(w.u32(atNewest)) >= Seconds || w.u32(atTotal) == 0
}

// Total is the number of requests counted when w was last used.
func (w Window) Total() uint32 { return w.u32(atTotal) }

// Take counts one request at now, in unix seconds, unless the window is full.
// A clock that goes backwards counts into the newest second.
func (w Window) Take(l Limit, now int64) Result {
	now = w.advance(l, now)
	total, used := w.u32(atTotal), w.u32(atBurst)
	if total >= l.PerMinute {
		if used+Seconds > l.Burst*Seconds {
			return w.full(l, now)
		}
		w.put(atBurst, used+Seconds)
	}
	if total == 0 {
		w.put(atOldest, uint32(now))
	}
	w.put(atTotal, total+1)
	slot := w.slot(now)
	w.put(slot, w.u32(slot)+1)
	return Result{OK: true, Limit: l.PerMinute, Remaining: left(l, total+1), Reset: w.reset()}
}

func (w Window) full(l Limit, now int64) Result {
	r := Result{Limit: l.PerMinute, Reset: w.reset()}
	if w.u32(atTotal) == 0 { // a limit of nothing at all
		r.Reset = now + Seconds
	}
	r.RetryAfter = max(1, int(w.freeAt(l)-now))
	return r
}

// freeAt is the second at which so many requests have left that one more fits.
func (w Window) freeAt(l Limit) int64 {
	total := w.u32(atTotal)
	for s, i := int64(w.u32(atOldest)), 0; i < Seconds; s, i = s+1, i+1 {
		total -= w.u32(w.slot(s))
		if total < l.PerMinute {
			return s + Seconds
		}
	}
	return int64(w.u32(atNewest)) + Seconds
}

// advance moves the newest slot to now and drops what has left the window.
func (w Window) advance(l Limit, now int64) int64 {
	newest := int64(w.u32(atNewest))
	if now <= newest {
		return newest
	}
	w.refill(l, now-newest)
	if now-newest >= Seconds {
		clear(w[atSlots:])
		w.put(atTotal, 0)
	} else {
		w.drop(newest, now)
	}
	w.put(atNewest, uint32(now))
	return now
}

func (w Window) drop(newest, now int64) {
	total := w.u32(atTotal)
	for s := newest + 1; s <= now; s++ {
		total -= w.u32(w.slot(s))
		w.put(w.slot(s), 0)
	}
	w.put(atTotal, total)
	oldest := max(int64(w.u32(atOldest)), now-Seconds+1)
	for total > 0 && w.u32(w.slot(oldest)) == 0 {
		oldest++
	}
	w.put(atOldest, uint32(oldest))
}

func (w Window) refill(l Limit, seconds int64) {
	if w.u32(atTotal) >= l.PerMinute && seconds < Seconds {
		return
	}
	back := min(uint64(seconds)*uint64(l.Burst), uint64(w.u32(atBurst)))
	w.put(atBurst, w.u32(atBurst)-uint32(back))
}

func (w Window) reset() int64 { return int64(w.u32(atOldest)) + Seconds }

func left(l Limit, total uint32) uint32 {
	if total >= l.PerMinute {
		return 0
	}
	return l.PerMinute - total
}

func (w Window) slot(second int64) int { return atSlots + 4*int(second%Seconds) }
func (w Window) u32(at int) uint32     { return binary.LittleEndian.Uint32(w[at:]) }
func (w Window) put(at int, v uint32)  { binary.LittleEndian.PutUint32(w[at:], v) }
