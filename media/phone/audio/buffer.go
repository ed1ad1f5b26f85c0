package audio

// Buffer holds a second of sound at the places that RTP timestamps give it, so that
// packets which come in another order, twice or not at all leave it even. What is taken
// is silence where nothing was put. Every call takes time linear in its samples.
type Buffer struct {
	rate    int
	samples []int16 // a ring
	next    uint64  // the place that is taken next
	offset  uint32  // of the place from the timestamp
	begun   bool
}

// delay is how far behind what arrives sound is taken, in samples for each rate: 60 ms
// make up for what networks delay.
func (b *Buffer) delay() uint64 { return uint64(b.rate) * 60 / 1000 }

// NewBuffer makes one for sound of rate samples a second.
func NewBuffer(rate int) *Buffer {
	return &Buffer{rate: rate, samples: make([]int16, rate)}
}

// Put puts sound at its timestamp. What comes too late is dropped; a timestamp that
// leads out of the second begins anew, as after a gap or with another sender's clock.
func (b *Buffer) Put(timestamp uint32, sound []int16) {
	if len(sound) > len(b.samples)/2 {
		return
	}
	at := int64(int32(timestamp-b.offset-uint32(b.next))) + int64(b.next) // #nosec G115 -- the difference of two clocks that wrap
	ahead := at - int64(b.next)                                           // #nosec G115 -- a place is far below 2^63
	if !b.begun || ahead < -int64(len(b.samples))/2 || ahead+int64(len(sound)) > int64(len(b.samples)) {
		b.begun = true
		clear(b.samples)
		b.offset = timestamp - uint32(b.next+b.delay()) // #nosec G115 -- wraps as timestamps do
		at = int64(b.next + b.delay())                  // #nosec G115 -- see above
	}
	for i, s := range sound {
		if place := at + int64(i); place >= int64(b.next) { // #nosec G115 -- see above
			b.samples[uint64(place)%uint64(len(b.samples))] = s
		}
	}
}

// Take fills out with the next samples, and with silence where there are none.
func (b *Buffer) Take(out []int16) {
	for i := range out {
		place := b.next % uint64(len(b.samples))
		out[i], b.samples[place] = b.samples[place], 0
		b.next++
	}
}
