package packaging

import (
	"encoding/binary"
	"fmt"
)

// maxFrames bounds the frames of a chunk.
const maxFrames = 1024

// Frame is one frame of a chunk.
type Frame struct {
	Time    uint64 // when it is shown, in the track's units
	Payload []byte // as the container has it
}

// ParseChunk reads a chunk of somebody else: the fragments of one track (ISO/IEC
// 14496-12, 8.8). It fails with ErrMedia. Time and memory are linear in b, whatever
// counts it declares; frames stay part of b.
func ParseChunk(b []byte) (frames []Frame, err error) {
	for at := 0; at < len(b); {
		kind, body, size := box(b[at:])
		if size == 0 {
			return nil, fmt.Errorf("%w: a chunk that is cut", ErrMedia)
		}
		if kind == "moof" {
			f := fragment{whole: b, start: at, frames: frames}
			if !f.moof(body) {
				return nil, fmt.Errorf("%w: a fragment that does not fit its chunk", ErrMedia)
			}
			frames = f.frames
		}
		at += size
	}
	return frames, nil
}

// box is the first box of b: its type, what is in it, and its size. 0: there is none.
func box(b []byte) (kind string, body []byte, size int) {
	if len(b) < 8 {
		return "", nil, 0
	}
	n := uint64(binary.BigEndian.Uint32(b))
	head := 8
	if n == 1 && len(b) >= 16 {
		n, head = binary.BigEndian.Uint64(b[8:]), 16
	}
	if n < uint64(head) || n > uint64(len(b)) {
		return "", nil, 0
	}
	return string(b[4:8]), b[head:n], int(n)
}

// fragment is what is read of one moof.
type fragment struct {
	whole  []byte
	start  int // of the moof in whole
	frames []Frame

	duration, size uint32 // defaults of the track
	time           uint64 // of the next frame
	data           uint64 // its place in whole
}

// moof reads a movie fragment; false: it is not right.
func (f *fragment) moof(b []byte) bool {
	return each(b, func(kind string, body []byte) bool {
		if kind != "traf" {
			return true
		}
		f.duration, f.size, f.time, f.data = 0, 0, 0, uint64(f.start)
		return each(body, func(kind string, body []byte) bool {
			switch kind {
			case "tfhd":
				return f.tfhd(&fields{b: body})
			case "tfdt":
				return f.tfdt(&fields{b: body})
			case "trun":
				return f.trun(&fields{b: body})
			}
			return true
		})
	})
}

// each calls read with every box in b until that is not right.
func each(b []byte, read func(kind string, body []byte) bool) bool {
	for len(b) > 0 {
		kind, body, size := box(b)
		if size == 0 || !read(kind, body) {
			return false
		}
		b = b[size:]
	}
	return true
}

// fields takes numbers from a box. After one that is not there, bad is set and all
// are zero.
type fields struct {
	b   []byte
	bad bool
}

// u32 takes 32 bits.
func (f *fields) u32() uint32 {
	if len(f.b) < 4 {
		f.b, f.bad = nil, true
		return 0
	}
	v := binary.BigEndian.Uint32(f.b)
	f.b = f.b[4:]
	return v
}

// u32If takes 32 bits where a flag is set, else it is or.
func (f *fields) u32If(set bool, or uint32) uint32 {
	if !set {
		return or
	}
	return f.u32()
}

// tfhd reads the defaults. Places in a file have no meaning in an object.
func (f *fragment) tfhd(b *fields) bool {
	flags := b.u32()
	b.u32() // the track: a MoQ track is one
	b.u32If(flags&0x2 != 0, 0)
	f.duration = b.u32If(flags&0x8 != 0, 0)
	f.size = b.u32If(flags&0x10 != 0, 0)
	return flags&0x1 == 0 && !b.bad
}

// tfdt reads the time of the first frame.
func (f *fragment) tfdt(b *fields) bool {
	head := b.u32()
	f.time = uint64(b.u32())
	if head>>24 == 1 {
		f.time = f.time<<32 | uint64(b.u32())
	}
	return !b.bad && f.time < 1<<62
}

// trun reads a run of frames.
func (f *fragment) trun(b *fields) bool {
	flags := b.u32()
	n := b.u32()
	if flags&0x1 != 0 {
		f.data = uint64(int64(f.start) + int64(int32(b.u32())))
	}
	b.u32If(flags&0x4 != 0, 0)
	if b.bad || n > maxFrames || len(f.frames)+int(n) > maxFrames {
		return false
	}
	for range n {
		duration := b.u32If(flags&0x100 != 0, f.duration)
		size := b.u32If(flags&0x200 != 0, f.size)
		b.u32If(flags&0x400 != 0, 0)
		offset := int64(b.u32If(flags&0x800 != 0, 0))
		if flags>>24 != 0 {
			offset = int64(int32(offset))
		}
		shown, end := int64(f.time)+offset, f.data+uint64(size)
		if b.bad || shown < 0 || f.data > end || end > uint64(len(f.whole)) {
			return false
		}
		f.frames = append(f.frames, Frame{uint64(shown), f.whole[f.data:end]})
		f.time, f.data = f.time+uint64(duration), end
	}
	return true
}
