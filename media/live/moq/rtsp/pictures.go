package rtsp

import (
	"bytes"
	"slices"

	"github.com/bluenviron/gortsplib/v4/pkg/format"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/fmp4"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mp4/codecs"
	"github.com/pion/rtp"
	"sluice.dev/sluice/media/live/moq/packaging"
)

// coding is what H.264 and H.265 differ in.
type coding struct {
	decode func(*rtp.Packet) ([][]byte, error)
	// begins reports whether a frame needs no other.
	begins func(unit [][]byte) bool
	// described are the parameter sets that the stream's description has.
	described func() [][]byte
	// set is which of them a part of a frame is; -1: none.
	set   func(part []byte) int
	codec func(sets [][]byte) codecs.Codec
	order interface {
		Extract(unit [][]byte, shown int64) (decoded int64, err error)
	}
	fill func(s *fmp4.Sample, offset int32, unit [][]byte) error
}

// h264 decodes H.264.
func (f *feed) h264(t *format.H264) (func(*rtp.Packet, int64) error, error) {
	dec, err := t.CreateDecoder()
	if err != nil {
		return nil, err
	}
	order := &h264.DTSExtractor{}
	order.Initialize()
	return f.pictures(coding{
		decode: dec.Decode, begins: h264.IsRandomAccess, order: order, fill: (*fmp4.Sample).FillH264,
		described: func() [][]byte { sps, pps := t.SafeParams(); return [][]byte{sps, pps} },
		set: func(part []byte) int {
			return slices.Index([]h264.NALUType{h264.NALUTypeSPS, h264.NALUTypePPS}, h264.NALUType(part[0]&0x1f))
		},
		codec: func(sets [][]byte) codecs.Codec { return &codecs.H264{SPS: sets[0], PPS: sets[1]} },
	}), nil
}

// h265 decodes H.265.
func (f *feed) h265(t *format.H265) (func(*rtp.Packet, int64) error, error) {
	dec, err := t.CreateDecoder()
	if err != nil {
		return nil, err
	}
	order := &h265.DTSExtractor{}
	order.Initialize()
	return f.pictures(coding{
		decode: dec.Decode, begins: h265.IsRandomAccess, order: order, fill: (*fmp4.Sample).FillH265,
		described: func() [][]byte { vps, sps, pps := t.SafeParams(); return [][]byte{vps, sps, pps} },
		set: func(part []byte) int {
			return slices.Index([]h265.NALUType{h265.NALUType_VPS_NUT, h265.NALUType_SPS_NUT, h265.NALUType_PPS_NUT}, h265.NALUType(part[0]>>1&0x3f))
		},
		codec: func(sets [][]byte) codecs.Codec { return &codecs.H265{VPS: sets[0], SPS: sets[1], PPS: sets[2]} },
	}), nil
}

// pictures hands on frames from the first one that needs no other.
func (f *feed) pictures(c coding) func(*rtp.Packet, int64) error {
	f.duration = f.Scale / 30
	var sets [][]byte // nil: nothing was handed on yet
	return func(p *rtp.Packet, at int64) error {
		unit, err := c.decode(p)
		if err != nil {
			return nil //nolint:nilerr // a frame in several packets, or a damaged one
		}
		key := c.begins(unit)
		if sets == nil {
			if !key {
				return nil
			}
			sets = c.described()
		}
		for _, part := range unit {
			if i := c.set(part); i >= 0 {
				sets[i] = part
			}
		}
		if err := f.parameters(c.codec, sets); err != nil {
			return err
		}
		whole := unit
		if key { // some publishers send the sets apart, and the order of frames is in them
			whole = slices.Concat(sets, unit)
		}
		dts, err := c.order.Extract(whole, at)
		if err != nil {
			return nil //nolint:nilerr // a frame that cannot be placed
		}
		s := &fmp4.Sample{}
		if err := c.fill(s, int32(at-dts), unit); err != nil {
			return err
		}
		return f.picture(dts, s)
	}
}

// picture hands on a frame of video. How long it is shown only the next one tells:
// it is said to last as long as the one before.
func (f *feed) picture(dts int64, s *fmp4.Sample) error {
	if f.sequence > 0 && dts > f.last {
		f.duration = uint32(min(dts-f.last, int64(f.Scale)))
	}
	f.last = dts
	s.Duration = max(f.duration, 1)
	return f.chunk(dts, s, !s.IsNonSyncSample)
}

// parameters makes the track known by its parameter sets, which it must keep: what
// was said in the catalog would not be so any more.
func (f *feed) parameters(codec func([][]byte) codecs.Codec, sets [][]byte) (err error) {
	if f.Init != nil {
		if !slices.EqualFunc(f.sets, sets, bytes.Equal) {
			return errParameters
		}
		return nil
	}
	if slices.ContainsFunc(sets, func(s []byte) bool { return len(s) == 0 }) {
		return errParameters
	}
	f.sets = slices.Clone(sets)
	f.Track, err = packaging.NewTrack("video", codec(sets), f.Scale)
	return err
}
