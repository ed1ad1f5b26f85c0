package aes67

import (
	"encoding/binary"
	"errors"

	"github.com/pion/rtp"
)

// Stats is what a receiver has counted since it began.
type Stats struct {
	Packets int64 `json:"packets"` // that were taken
	Lost    int64 `json:"lost"`    // that never came, or not yet
	Refused int64 `json:"refused"` // of another form than the flow's
	BufferStats
}

// unpacker puts the packets of a flow into a buffer. It follows one sender of RTP
// (its SSRC) at a time, and another when that has fallen silent for a second.
type unpacker struct {
	flow   Flow
	buffer *Buffer
	frames []float32

	ssrc    uint32
	heard   bool
	last    uint16 // sequence number
	time    uint32 // RTP timestamp of the last packet
	at      int64  // its place in the sender's time
	others  int    // packets of other senders, in a row
	packets int64
	lost    int64
	refused int64
}

// errPacket says that a datagram is no packet of the flow.
var errPacket = errors.New("no RTP packet of the flow")

// startAt is where the sender's time begins: far enough from 0 that what comes before
// its first packet has a place too.
const startAt = 1 << 40

// take reads a datagram. It takes time and memory linear in it.
func (u *unpacker) take(datagram []byte) error {
	var p rtp.Packet
	frame := u.flow.sampleBytes() * u.flow.Channels
	if err := p.Unmarshal(datagram); err != nil || p.PayloadType != u.flow.Payload || len(p.Payload) == 0 || len(p.Payload)%frame != 0 {
		u.refused++
		return errPacket
	}
	if !u.follow(p.Header) {
		u.refused++
		return errPacket
	}
	u.packets++
	u.frames = decode(u.frames[:0], p.Payload, u.flow.sampleBytes())
	u.buffer.Write(u.at, u.frames)
	return nil
}

// follow finds the place of a packet in its sender's time, across the wrap of its
// counters (RFC 3550, A.1); false: it is another sender's.
func (u *unpacker) follow(h rtp.Header) bool {
	if u.heard && h.SSRC != u.ssrc {
		if u.others++; u.others < Rate/u.flow.frames() {
			return false
		}
		u.heard = false
		u.buffer.Reset()
	}
	u.others = 0
	if !u.heard {
		u.heard, u.ssrc, u.last, u.time, u.at = true, h.SSRC, h.SequenceNumber-1, h.Timestamp, startAt
	}
	if step := int16(h.SequenceNumber - u.last); step > 0 {
		u.lost += int64(step) - 1
		u.last = h.SequenceNumber
	} else if step < 0 && u.lost > 0 {
		u.lost-- // it was late
	}
	moved := int64(int32(h.Timestamp - u.time))
	u.at, u.time = u.at+moved, h.Timestamp
	if u.at < startAt/2 { // a sender that runs backwards
		u.heard = false
		u.buffer.Reset()
		return false
	}
	return true
}

// stats returns the counts.
func (u *unpacker) stats() Stats {
	return Stats{Packets: u.packets, Lost: u.lost, Refused: u.refused, BufferStats: u.buffer.Stats()}
}

// decode appends the samples of b, big-endian integers of size bytes, as numbers from
// -1 to 1.
func decode(out []float32, b []byte, size int) []float32 {
	for ; len(b) >= size; b = b[size:] {
		if size == 2 {
			out = append(out, float32(int16(binary.BigEndian.Uint16(b)))/(1<<15))
			continue
		}
		v := int32(b[0])<<24 | int32(b[1])<<16 | int32(b[2])<<8
		out = append(out, float32(v>>8)/(1<<23))
	}
	return out
}

// encode appends samples as big-endian integers of size bytes; what is beyond the
// scale is held at its end.
func encode(out []byte, samples []float32, size int) []byte {
	for _, s := range samples {
		if size == 2 {
			out = binary.BigEndian.AppendUint16(out, uint16(int16(scale(s, 1<<15))))
			continue
		}
		v := scale(s, 1<<23)
		out = append(out, byte(v>>16), byte(v>>8), byte(v))
	}
	return out
}

// scale makes an integer of a sample, below full in size. What is no number is silence.
func scale(s float32, full float64) int32 {
	v := float64(s) * full
	switch {
	case v != v:
		return 0
	case v >= full-1:
		return int32(full - 1)
	case v <= -full:
		return int32(-full)
	}
	if v < 0 {
		return int32(v - 0.5)
	}
	return int32(v + 0.5)
}

// packer makes the packets of a flow.
type packer struct {
	flow Flow
	next rtp.Header
	data []byte
	out  []byte
}

// pack makes the packet of frames, which are interleaved. It is valid until the next
// one is made.
func (p *packer) pack(frames []float32) ([]byte, error) {
	p.data = encode(p.data[:0], frames, p.flow.sampleBytes())
	packet := rtp.Packet{Header: p.next, Payload: p.data}
	if need := packet.MarshalSize(); cap(p.out) < need {
		p.out = make([]byte, need)
	}
	n, err := packet.MarshalTo(p.out[:cap(p.out)])
	p.next.SequenceNumber++
	p.next.Timestamp += uint32(len(frames) / p.flow.Channels)
	return p.out[:n], err
}
