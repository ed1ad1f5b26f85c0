package aes67

import (
	"math"
	"sync"
)

// Buffer levels out what lies between a sender's clock and ours: packets that come
// late, in another order or not at all, and a clock that runs faster or slower. Frames
// are written where they belong in the sender's time and read by our clock. What is
// missing reads as silence. While the sender's clock differs from ours, a block is made
// of one frame more or less than it has, by linear interpolation, 50 times a second at
// most, which follows differences of up to 1,000 ppm without a sound; crystals stay
// below 100.
//
// It holds a second of sound. A call costs time linear in the frames it is given.
// Buffer is safe for concurrent use.
type Buffer struct {
	mu       sync.Mutex
	channels int
	target   int64     // frames between what is written and what is read
	ring     []float32 // of Rate frames

	known   bool  // read and head are places in the sender's time
	playing bool  // the delay is reached
	read    int64 // the next frame to be read
	head    int64 // behind the last frame that was written
	joined  bool  // what is written follows on what was: Append
	level   float64
	since   int64 // frames read since the last correction
	behind  int   // writes in a row that came too late

	stats BufferStats
}

// BufferStats are counts since the beginning.
type BufferStats struct {
	Late     int64 `json:"late"`     // writes whose time had passed
	Silent   int64 `json:"silent"`   // frames for which there was nothing
	Resets   int64 `json:"resets"`   // times that the sender's time began anew
	Adjusted int64 `json:"adjusted"` // frames left out (positive) or added for the clock's sake
	Frames   int64 `json:"frames"`   // read
}

// How the level is held.
const (
	dead     = 2 * Rate / 1000 // frames by which it may differ before it is corrected
	smooth   = 1.25 * Rate     // frames over which the average is taken
	apart    = Rate / 50       // frames from one correction to the next: 1,000 ppm at most
	maxLate  = 200             // writes in a row behind the place that is read
	maxAhead = Rate / 2        // frames of excess beyond which the rest is left out at once
)

// NewBuffer returns a Buffer for sound of so many channels that delays it by delay
// frames, at most Rate/2.
func NewBuffer(channels int, delay int64) *Buffer {
	return &Buffer{channels: channels, target: min(max(delay, 1), Rate/2), ring: make([]float32, Rate*channels)}
}

// Write puts interleaved frames at a place in the sender's time.
func (b *Buffer) Write(at int64, frames []float32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := int64(len(frames) / b.channels)
	if n > Rate {
		return
	}
	if !b.known {
		b.begin(at)
	}
	if at+n <= b.read {
		b.stats.Late++
		if b.behind++; b.behind < maxLate && b.read-at < Rate {
			return
		}
		b.begin(at)
		b.stats.Resets++
	}
	b.behind = 0
	if at+n > b.read+Rate {
		b.begin(at)
		b.stats.Resets++
	}
	if skip := b.read - at; skip > 0 {
		frames, at = frames[skip*int64(b.channels):], b.read
	}
	for len(frames) > 0 {
		i := int(at%Rate) * b.channels
		done := copy(b.ring[i:], frames)
		frames, at = frames[done:], at+int64(done/b.channels)
	}
	b.head = max(b.head, at)
}

// Append writes frames behind those that were written last, for senders whose frames
// have no place in time. After a gap the delay is kept again from its end on.
func (b *Buffer) Append(frames []float32) {
	b.mu.Lock()
	b.joined = true
	at := b.head
	b.mu.Unlock()
	b.Write(at, frames)
}

// begin forgets what is held, and lets the sender's time begin at at, from 0 on.
func (b *Buffer) begin(at int64) {
	clear(b.ring)
	b.read, b.head, b.known, b.playing, b.behind = at, at, true, false, 0
}

// Reset lets the sender's time begin anew with the next write.
func (b *Buffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known {
		b.stats.Resets++
	}
	b.known, b.playing = false, false
}

// Read fills out with the next frames, and reports whether any of them was written:
// else it is silence.
func (b *Buffer) Read(out []float32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := int64(len(out) / b.channels)
	b.stats.Frames += n
	have := b.head - b.read
	if b.known && !b.playing && have >= b.target {
		b.playing, b.level = true, float64(b.target)
		if have > b.target+n { // came in one go
			b.drop(have - b.target)
			have = b.target
		}
	}
	if !b.playing {
		clear(out)
		b.stats.Silent += n
		return false
	}
	take := n
	if b.joined && have < n {
		b.playing = false
		clear(out)
		b.copy(out, have, have)
		b.drop(have)
		b.stats.Silent += n - have
		return have > 0
	}
	if have >= n+2 {
		take += b.correct(have, n)
	}
	b.stats.Silent += max(0, n-max(0, have))
	b.copy(out, n, take)
	b.drop(take)
	if b.read-b.head > Rate { // nobody sends
		b.known, b.playing = false, false
	}
	return have > 0
}

// correct says by how many frames a block of n is to be longer, given that so many are
// held.
func (b *Buffer) correct(have, n int64) int64 {
	if have-b.target > maxAhead {
		b.stats.Adjusted += have - b.target
		b.drop(have - b.target)
		b.level = float64(b.target)
		return 0
	}
	b.level += (float64(have) - b.level) * float64(n) / smooth
	if b.since += n; b.since < apart {
		return 0
	}
	switch off := b.level - float64(b.target); {
	case off > dead:
		b.since = 0
		b.stats.Adjusted++
		return 1
	case off < -dead:
		b.since = 0
		b.stats.Adjusted--
		return -1
	}
	return 0
}

// copy makes n frames of the next take.
func (b *Buffer) copy(out []float32, n, take int64) {
	ch := int64(b.channels)
	frame := func(i int64) []float32 {
		at := (b.read + i) % Rate * ch
		return b.ring[at : at+ch]
	}
	if take == n {
		for i := range n {
			copy(out[i*ch:], frame(i))
		}
		return
	}
	for i := range n {
		place := float64(i*take) / float64(n)
		whole := math.Floor(place)
		part := float32(place - whole)
		one, next := frame(int64(whole)), frame(min(int64(whole)+1, take))
		for c := range ch {
			out[i*ch+c] = one[c] + (next[c]-one[c])*part
		}
	}
}

// drop goes on by n frames, which read as silence from now on.
func (b *Buffer) drop(n int64) {
	for left := min(n, Rate); left > 0; {
		i := b.read % Rate
		run := min(left, Rate-i)
		clear(b.ring[i*int64(b.channels) : (i+run)*int64(b.channels)])
		b.read, left, n = b.read+run, left-run, n-run
	}
	b.read += n
}

// Stats returns the counts.
func (b *Buffer) Stats() BufferStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stats
}
