// Package ratelimit counts requests in a sliding window of 60 seconds, exact to one
// second, in a fixed number of bytes. A window is a plain byte slice, because an edge keeps
// it in Envoy's shared data, where all workers take turns by compare-and-swap.
package ratelimit

import "encoding/binary"

// Seconds is the length of the window (contract 4.1).
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
	// Strict says that edges of a fleet that are cut off must not let more through
	// together. Windows do not look at it: who takes does; see sharedlimit.Shares.
	Strict bool
}

// Result is the state of a window after a request, as the headers show it.
type Result struct {
	OK         bool
	Policy     string // name of the limit, for the RateLimit fields; the caller sets it
	Limit      uint32
	Remaining  uint32
	Reset      int64 // unix seconds at which the oldest counted request leaves
	RetryAfter int   // seconds until a request can pass; 0 when OK
}

// Layout of a window: ID, second of the newest slot, second of the oldest
// counted request, requests counted, burst used (in sixtieths), second at which
// it was last found hot, slots; behind them what the other edges have counted.
const (
	atNewest = 16
	atOldest = 20
	atTotal  = 24
	atBurst  = 28
	atHot    = 32
	atSlots  = 36
	// Size is the length of a window in bytes, without a tail.
	Size = atSlots + 4*Seconds
)

// Window is Size bytes, or more with a tail; see New and WithOthers.
type Window []byte

// New returns an empty window of id.
func New(id ID) Window {
	w := make(Window, Size)
	copy(w, id[:])
	return w
}

// Is reports whether w is a window of id.
func (w Window) Is(id ID) bool { return w.Whole() && ID(w[:16]) == id }

// Whole reports whether w has the size of a window.
func (w Window) Whole() bool { return len(w) == Size || len(w) == Size+tailSize }

// Free reports whether nothing in w counts at now any more, so that another may
// have its place.
func (w Window) Free(now int64) bool {
	if !w.Whole() {
		return true
	}
	own := now-int64(w.u32(atNewest)) < Seconds && w.u32(atTotal) > 0
	return !own && w.others(Fleet{}, now).newest <= now-Seconds
}

// Total is the number of requests counted here when w was last used.
func (w Window) Total() uint32 { return w.u32(atTotal) }

// Take counts one request at now, in unix seconds, unless the window is full.
// A clock that goes backwards counts into the newest second; one that is set back
// by a window or more takes what has been counted along, as if it were new.
func (w Window) Take(l Limit, now int64) Result { return w.TakeAmong(l, Fleet{}, now) }

// TakeAmong is Take with the requests that other edges have let through.
func (w Window) TakeAmong(l Limit, f Fleet, now int64) Result {
	shown := l.PerMinute
	l = f.Among(l)
	now = w.advance(l, f, now)
	e := w.others(f, now)
	total, used := w.u32(atTotal)+e.total, w.u32(atBurst)
	if total >= l.PerMinute {
		if used+e.burst+Seconds > l.Burst*Seconds || uint64(total) >= uint64(l.PerMinute)+uint64(l.Burst) {
			return w.full(l, e, shown, now)
		}
		w.put(atBurst, used+Seconds)
	}
	w.count(now)
	return Result{OK: true, Limit: shown, Remaining: remaining(l, total+1), Reset: w.reset(e, now)}
}

// count adds a request at now, the newest second.
func (w Window) count(now int64) {
	total := w.u32(atTotal)
	if total == 0 {
		w.put(atOldest, uint32(now))
	}
	w.put(atTotal, total+1)
	slot := w.slot(now)
	w.put(slot, w.u32(slot)+1)
}

// GiveBack takes back the last request that Take has counted, when another
// window then refused it. A burst that it used stays used.
func (w Window) GiveBack() {
	slot := w.slot(int64(w.u32(atNewest)))
	if n := w.u32(slot); n > 0 {
		w.put(slot, n-1)
		w.put(atTotal, w.u32(atTotal)-1)
	}
}

func (w Window) full(l Limit, e otherCounts, shown uint32, now int64) Result {
	return Result{Limit: shown, Reset: w.reset(e, now), RetryAfter: max(1, int(w.freeAt(l, e, now)-now))}
}

// freeAt is the second at which so many requests have left that one more fits.
// Those guessed of the others count as the newest.
func (w Window) freeAt(l Limit, e otherCounts, now int64) int64 {
	total := w.u32(atTotal) + e.total
	for s := now - Seconds + 1; s < now; s++ {
		total -= min(total, w.u32(w.slot(s))+e.at(s))
		if total < l.PerMinute {
			return s + Seconds
		}
	}
	return now + Seconds
}

// advance moves the newest slot to now and drops what has left the window.
func (w Window) advance(l Limit, f Fleet, now int64) int64 {
	newest := int64(w.u32(atNewest))
	if newest-now >= Seconds {
		w.setBack(now)
		return now
	}
	if now <= newest {
		return newest
	}
	w.refill(l, f, newest, now-newest)
	if now-newest >= Seconds {
		clear(w[atSlots:Size])
		w.put(atTotal, 0)
	} else {
		w.drop(newest, now)
	}
	w.put(atNewest, uint32(now))
	return now
}

// setBack has everything that is counted count at now. When it was counted nobody
// knows, as the clock was wrong: so nothing is let through too early, and nothing
// is held up for longer than a window.
func (w Window) setBack(now int64) {
	total := w.u32(atTotal)
	clear(w[atSlots:Size])
	w.put(w.slot(now), total)
	w.put(atOldest, uint32(now))
	w.put(atNewest, uint32(now))
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

// refill gives back burst for the seconds since the newest slot, if the window
// was not full then. Each edge gives back a part, since each has used one.
func (w Window) refill(l Limit, f Fleet, newest, seconds int64) {
	if w.u32(atBurst) == 0 || seconds < Seconds && w.u32(atTotal)+w.others(f, newest).total >= l.PerMinute {
		return
	}
	back := min(uint64(seconds)*uint64(l.Burst)/uint64(max(1, f.Edges)), uint64(w.u32(atBurst)))
	w.put(atBurst, w.u32(atBurst)-uint32(back))
}

// reset is the second at which the oldest request leaves, here or elsewhere.
func (w Window) reset(e otherCounts, now int64) int64 {
	own := now // nothing counts: a limit of nothing at all
	if w.u32(atTotal) > 0 {
		own = int64(w.u32(atOldest))
	}
	for s := max(now-Seconds, e.newest-Seconds) + 1; e.slots != nil && s < own; s++ {
		if e.at(s) > 0 {
			return s + Seconds
		}
	}
	return own + Seconds
}

func remaining(l Limit, total uint32) uint32 {
	if total >= l.PerMinute {
		return 0
	}
	return l.PerMinute - total
}

func (w Window) slot(second int64) int { return atSlots + 4*int(second%Seconds) }
func (w Window) u32(at int) uint32     { return binary.LittleEndian.Uint32(w[at:]) }
func (w Window) put(at int, v uint32)  { binary.LittleEndian.PutUint32(w[at:], v) }
