package ratelimit

import "encoding/binary"

// A window may have a tail: what the other edges of the fleet have let through,
// as this edge was last told. The edge counts its own requests exactly, and the
// others' as they were then, plus what they will have let through since at the
// pace they had.

// Fleet is what an edge knows of the fleet at the time of a request.
type Fleet struct {
	Edges  uint32 // how many share the limits, this one included; 0: 1
	Cut    bool   // nothing has been heard of the others for a while
	Millis uint32 // the time in unix milliseconds, its low 32 bits
}

// Among is l as the edge may use it up: all of it, or a fair share when the edge
// is cut off from the others.
func (f Fleet) Among(l Limit) Limit {
	if !f.Cut || f.Edges < 2 {
		return l
	}
	return Limit{PerMinute: max(1, l.PerMinute/f.Edges), Burst: l.Burst / f.Edges}
}

// Others is what the other edges have counted in a window's last 60 seconds.
type Others struct {
	Newest int64           // second of the newest slot
	Slots  [Seconds]uint32 // by second modulo Seconds
	Burst  uint32          // burst used, in sixtieths of a request
	Pace   uint32          // requests in 1000 seconds
	Millis uint32          // when this was so, as in Fleet
}

// Layout of the tail, from its start.
const (
	tailNewest = 0
	tailBurst  = 4
	tailPace   = 8
	tailMillis = 12
	tailSlots  = 16
	tailSize   = tailSlots + 4*Seconds
	// MaxSize is the length of a window in bytes, with its tail.
	MaxSize = Size + tailSize
)

// maxGuess is for how many milliseconds the others' pace is believed.
const maxGuess = 1000

// WithOthers returns w with o as its tail; it may share w's memory.
func (w Window) WithOthers(o Others) Window {
	w = append(w[:Size:Size], make([]byte, tailSize)...)
	w.put(Size+tailNewest, uint32(o.Newest))
	w.put(Size+tailBurst, o.Burst)
	w.put(Size+tailPace, o.Pace)
	w.put(Size+tailMillis, o.Millis)
	for i, n := range o.Slots {
		w.put(Size+tailSlots+4*i, n)
	}
	return w
}

// otherCounts is what the tail says at a time.
type otherCounts struct {
	slots  []byte // nil: nothing
	newest int64
	total  uint32 // requests in the window, those guessed included
	burst  uint32
}

// others reads the tail of w.
func (w Window) others(f Fleet, now int64) (e otherCounts) {
	if f.Cut || len(w) != Size+tailSize {
		return e
	}
	tail := w[Size:]
	e.slots, e.newest, e.burst = tail[tailSlots:], int64(tail.u32(tailNewest)), tail.u32(tailBurst)
	for s := max(now, e.newest) - Seconds + 1; s <= e.newest; s++ {
		if s > now-Seconds {
			e.total += e.at(s)
		}
	}
	if e.newest <= now-Seconds { // nothing of it counts, nor does a pace of then
		e.burst = 0
		return e
	}
	if ago := f.Millis - tail.u32(tailMillis); ago < 1<<31 {
		e.total += uint32(uint64(tail.u32(tailPace)) * uint64(min(ago, maxGuess)) / 1_000_000)
	}
	return e
}

// at is what was counted in a second.
func (e otherCounts) at(second int64) uint32 {
	if e.slots == nil || second > e.newest || second <= e.newest-Seconds {
		return 0
	}
	return binary.LittleEndian.Uint32(e.slots[4*int(second%Seconds):])
}

// Share is what w says of this edge's own requests, for the other edges.
func (w Window) Share() Others {
	o := Others{Newest: int64(w.u32(atNewest)), Burst: w.u32(atBurst)}
	for i := range o.Slots {
		o.Slots[i] = w.u32(atSlots + 4*i)
	}
	return o
}

// ID is whose window w is.
func (w Window) ID() ID { return ID(w[:16]) }

// Hot reports whether this edge alone has let so much through that the fleet
// together may have used up half of l. It does so once in a second, and notes
// that it did.
func (w Window) Hot(l Limit, f Fleet, now int64) bool {
	if f.Edges < 2 || uint64(w.Total())*2*uint64(f.Edges) < uint64(l.PerMinute) || w.u32(atHot) == uint32(now) {
		return false
	}
	w.put(atHot, uint32(now))
	return true
}

// At is what o has counted in a second.
func (o *Others) At(second int64) uint32 {
	if second > o.Newest || second <= o.Newest-Seconds {
		return 0
	}
	return o.Slots[second%Seconds]
}
