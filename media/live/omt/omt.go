// Package omt receives and sends sound by Open Media Transport, protocol 1.0: frames
// over TCP, sound as planar 32-bit floats (FPA1). Pictures in it are VMX1, for which
// there is no codec here: they are not asked for, and not sent.
package omt

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"
)

// The kinds of frames.
const (
	kindMetadata = 1
	kindVideo    = 2
	kindAudio    = 4
)

// Sizes of the parts of a frame, in bytes.
const (
	headerSize = 16
	audioSize  = 24
)

// Bounds of what the other side sends.
const (
	maxFrame    = 1 << 20 // bytes of a frame of sound, as libomtnet has it
	maxMetadata = 64 << 10
	maxChannels = 32
)

// fpa1 is the codec's FourCC, and subscribe what a receiver sends to be sent sound.
const (
	fpa1      = 'F' | 'P'<<8 | 'A'<<16 | '1'<<24
	subscribe = `<OMTSubscribe Audio="true" />`
)

// errFrame says that the other side does not speak the protocol.
var errFrame = errors.New("no frame of OMT 1.0 within its bounds")

// frame is one frame as it was sent, without its header.
type frame struct {
	kind byte
	data []byte // with the extended header; valid until the next is read
}

// reader reads frames.
type reader struct {
	r   io.Reader
	buf []byte
}

// next reads a frame. One of pictures is left out, whatever its size; one of sound or of
// metadata is at most maxFrame or maxMetadata long. It takes time linear in the frame.
func (r *reader) next() (frame, error) {
	for {
		var h [headerSize]byte
		if _, err := io.ReadFull(r.r, h[:]); err != nil {
			return frame{}, err
		}
		kind, size, tail := h[1], int64(int32(binary.LittleEndian.Uint32(h[12:]))), int64(binary.LittleEndian.Uint16(h[10:]))
		most := int64(maxMetadata)
		switch kind {
		case kindAudio:
			most = maxFrame
		case kindVideo:
			most = math.MaxInt32
		case kindMetadata:
			tail = 0
		}
		if h[0] != 1 || size < tail || size > most {
			return frame{}, errFrame
		}
		if kind != kindAudio && kind != kindMetadata {
			if _, err := io.CopyN(io.Discard, r.r, size); err != nil {
				return frame{}, err
			}
			continue
		}
		if int64(cap(r.buf)) < size {
			r.buf = make([]byte, size)
		}
		b := r.buf[:size]
		if _, err := io.ReadFull(r.r, b); err != nil {
			return frame{}, err
		}
		return frame{kind, b[:size-tail]}, nil
	}
}

// Sound is what a frame of sound holds.
type Sound struct {
	Rate     int
	Channels int
	Frames   []float32 // interleaved
}

// sound reads a frame's sound into out, whose Frames it reuses. Channels that were left
// out because they are silent read as silence. It takes time and memory linear in data,
// but for channels that are left out, of which 32 are the most.
func sound(out *Sound, data []byte) error {
	if len(data) < audioSize || binary.LittleEndian.Uint32(data) != fpa1 {
		return errFrame
	}
	n := int(int32(binary.LittleEndian.Uint32(data[8:])))
	out.Rate, out.Channels = int(int32(binary.LittleEndian.Uint32(data[4:]))), int(int32(binary.LittleEndian.Uint32(data[12:])))
	active := binary.LittleEndian.Uint32(data[16:])
	data = data[audioSize:]
	const most = maxFrame / 4 / maxChannels
	if out.Rate < 8000 || out.Rate > 192000 || out.Channels < 1 || out.Channels > maxChannels || n < 0 || n > most ||
		active>>out.Channels != 0 || len(data) < bits.OnesCount32(active)*n*4 {
		return errFrame
	}
	if cap(out.Frames) < n*out.Channels {
		out.Frames = make([]float32, n*out.Channels)
	}
	out.Frames = out.Frames[:n*out.Channels]
	clear(out.Frames)
	for c := range out.Channels {
		if active>>c&1 == 0 {
			continue
		}
		for i := range n {
			v := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
			if v != v { // no number
				v = 0
			}
			out.Frames[i*out.Channels+c] = v
		}
		data = data[4*n:]
	}
	return nil
}

// header appends a frame's header. at is in units of 100 ns.
func header(b []byte, kind byte, at int64, size int) []byte {
	b = append(b, 1, kind)
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	b = binary.LittleEndian.AppendUint16(b, 0)
	return binary.LittleEndian.AppendUint32(b, uint32(size))
}

// metadata makes a frame of metadata.
func metadata(text string) []byte {
	return append(append(header(nil, kindMetadata, 0, len(text)+1), text...), 0)
}

// audio makes a frame of sound; silent channels are left out.
func audio(at int64, rate, channels int, frames []float32) []byte {
	n := len(frames) / channels
	var active uint32
	for i, v := range frames {
		if v != 0 {
			active |= 1 << (i % channels)
		}
	}
	b := header(nil, kindAudio, at, audioSize+4*n*bits.OnesCount32(active))
	for _, v := range []uint32{fpa1, uint32(rate), uint32(n), uint32(channels), active, 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for c := range channels {
		if active>>c&1 == 0 {
			continue
		}
		for i := range n {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(frames[i*channels+c]))
		}
	}
	return b
}
