// Package packaging puts frames into the containers that MoQ carries, and takes them
// out: CMAF chunks (ISO/IEC 23000-19) of one frame each, and the catalogs that name
// the tracks.
//
// What it costs: an init segment has at most MaxInit bytes and a catalog MaxCatalog,
// which bounds time and memory; a chunk is decoded in time linear in it, and its
// samples stay part of it.
package packaging

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/fmp4"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mp4/codecs"
)

// MaxInit bounds an init segment, in bytes.
const MaxInit = 16 << 10

// ErrMedia says that bytes are no media that is taken here.
var ErrMedia = errors.New("not H.264, H.265, AAC or Opus in CMAF")

// Track is one track of a broadcast.
type Track struct {
	Name  string
	Codec codecs.Codec // H.264, H.265, AAC or Opus
	Scale uint32       // units a second
	Init  []byte       // its CMAF header
}

// NewTrack is a track with its init segment. The parameter sets of a video codec
// must be there.
func NewTrack(name string, codec codecs.Codec, scale uint32) (Track, error) {
	var out buffer
	init := fmp4.Init{Tracks: []*fmp4.InitTrack{{ID: 1, TimeScale: scale, Codec: codec}}}
	if err := init.Marshal(&out); err != nil {
		return Track{}, fmt.Errorf("write the CMAF header: %w", err)
	}
	return Track{Name: name, Codec: codec, Scale: scale, Init: out.b}, nil
}

// Chunk is one frame as a CMAF chunk.
func Chunk(sequence uint32, base uint64, s *fmp4.Sample) ([]byte, error) {
	var out buffer
	part := fmp4.Part{SequenceNumber: sequence, Tracks: []*fmp4.PartTrack{{ID: 1, BaseTime: base, Samples: []*fmp4.Sample{s}}}}
	if err := part.Marshal(&out); err != nil {
		return nil, fmt.Errorf("write a CMAF chunk: %w", err)
	}
	return out.b, nil
}

// ParseTrack reads a CMAF header of somebody else. It fails with ErrMedia.
func ParseTrack(name string, init []byte) (t Track, err error) {
	defer caught(&err)
	if len(init) > MaxInit {
		return t, fmt.Errorf("%w: a header of %d bytes", ErrMedia, len(init))
	}
	var in fmp4.Init
	if err := in.Unmarshal(bytes.NewReader(init)); err != nil {
		return t, fmt.Errorf("%w: %w", ErrMedia, err)
	}
	if len(in.Tracks) != 1 || in.Tracks[0].TimeScale == 0 || in.Tracks[0].TimeScale > maxScale {
		return t, fmt.Errorf("%w: one track is wanted in each header", ErrMedia)
	}
	t = Track{Name: name, Codec: in.Tracks[0].Codec, Scale: in.Tracks[0].TimeScale, Init: init}
	_, err = t.codec()
	return t, err
}

// maxScale bounds the units a second that a header may declare.
const maxScale = 10_000_000

// caught turns a fault of the parser into ErrMedia: its input is a stranger's.
func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", ErrMedia, r)
	}
}

// NALUnits are those of a frame of H.264 or H.265; none is empty.
func (f Frame) NALUnits() (units [][]byte, err error) {
	defer caught(&err)
	if units, err = (fmp4.Sample{Payload: f.Payload}).GetH264(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMedia, err)
	}
	return slices.DeleteFunc(units, func(u []byte) bool { return len(u) < 2 }), nil
}

// codec is the codec's name as RFC 6381 has it. It fails with ErrMedia for a codec
// that is not carried, or parameter sets that are none.
func (t Track) codec() (string, error) {
	switch c := t.Codec.(type) {
	case *codecs.H264:
		if len(c.SPS) < 4 {
			return "", fmt.Errorf("%w: no parameter sets", ErrMedia)
		}
		return fmt.Sprintf("avc1.%02x%02x%02x", c.SPS[1], c.SPS[2], c.SPS[3]), nil
	case *codecs.H265:
		return h265Name(c.SPS)
	case *codecs.MPEG4Audio:
		return fmt.Sprintf("mp4a.40.%d", c.Config.Type), nil
	case *codecs.Opus:
		return "opus", nil
	}
	return "", ErrMedia
}

// h265Name is ISO/IEC 14496-15, E.3.
func h265Name(raw []byte) (string, error) {
	var sps h265.SPS
	if err := sps.Unmarshal(raw); err != nil {
		return "", fmt.Errorf("%w: %w", ErrMedia, err)
	}
	p := sps.ProfileTierLevel
	var flags uint32 // in reverse order of their bits
	for i, set := range p.GeneralProfileCompatibilityFlag {
		if set {
			flags |= 1 << i
		}
	}
	tier := "L"
	if p.GeneralTierFlag != 0 {
		tier = "H"
	}
	return fmt.Sprintf("hvc1.%d.%x.%s%d.B0", p.GeneralProfileIdc, flags, tier, p.GeneralLevelIdc), nil
}

// size is the width and height of a video track; 0 of another one.
func (t Track) size() (width, height int) {
	switch c := t.Codec.(type) {
	case *codecs.H264:
		var sps h264.SPS
		if sps.Unmarshal(c.SPS) == nil {
			return sps.Width(), sps.Height()
		}
	case *codecs.H265:
		var sps h265.SPS
		if sps.Unmarshal(c.SPS) == nil {
			return sps.Width(), sps.Height()
		}
	}
	return 0, 0
}

// sound is the sample rate and the channels of an audio track.
func (t Track) sound() (rate, channels int) {
	switch c := t.Codec.(type) {
	case *codecs.MPEG4Audio:
		if c.Config.ChannelConfig == 7 {
			return c.Config.SampleRate, 8
		}
		return c.Config.SampleRate, int(c.Config.ChannelConfig)
	case *codecs.Opus:
		return 48000, c.ChannelCount
	}
	return 0, 0
}

// buffer is memory that can be written anywhere, as the boxes' writer wants it.
type buffer struct {
	b  []byte
	at int
}

// Write implements io.Writer.
func (w *buffer) Write(p []byte) (int, error) {
	if need := w.at + len(p); need > len(w.b) {
		w.b = append(w.b, make([]byte, need-len(w.b))...)
	}
	w.at += copy(w.b[w.at:], p)
	return len(p), nil
}

// Seek implements io.Seeker.
func (w *buffer) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += int64(w.at)
	case io.SeekEnd:
		offset += int64(len(w.b))
	}
	if offset < 0 || offset > int64(len(w.b)) {
		return 0, errors.New("seek outside of what was written")
	}
	w.at = int(offset)
	return offset, nil
}

// Begins reports whether a player can begin with a frame of t.
func (t Track) Begins(f Frame) bool {
	if !t.Codec.IsVideo() {
		return true
	}
	units, err := f.NALUnits()
	if _, is265 := t.Codec.(*codecs.H265); is265 {
		return err == nil && h265.IsRandomAccess(units)
	}
	return err == nil && h264.IsRandomAccess(units)
}

// Duration is a number of t's units as time.
func (t Track) Duration(units uint64) time.Duration {
	return time.Duration(Rescale(units, uint64(time.Second), uint64(t.Scale)) & math.MaxInt64)
}

// Ticks is a time, which is not negative, in t's units.
func (t Track) Ticks(at time.Duration) uint64 {
	return Rescale(uint64(max(0, at)), uint64(t.Scale), uint64(time.Second))
}

// Rescale is units × to / from without overflow, cut to 64 bits.
func Rescale(units, to, from uint64) uint64 {
	hi, lo := bits.Mul64(units, to)
	q, _ := bits.Div64(hi%from, lo, from)
	return q
}
