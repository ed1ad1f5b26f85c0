package rtsp

import (
	"bytes"

	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/format"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/mpeg4audio"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/opus"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/fmp4"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mp4/codecs"
	"github.com/pion/rtp"
	"sluice.dev/sluice/media/live/moq/broadcast"
	"sluice.dev/sluice/media/live/moq/packaging"
)

// Kinds of tracks.
const (
	video = iota
	audio
)

// The publisher's priorities: sound goes first, as a gap in it is noticed more.
const (
	audioPriority = 64
	videoPriority = 128
)

// origin is added to every time, in seconds: the first frames of a reader may lie
// before the moment that the engine counts from, and CMAF has no time before zero.
const origin = 10

// feed turns the packets of one track into chunks.
type feed struct {
	packaging.Track // Init is nil until it is known
	kind            int
	out             *broadcast.Track
	// frames takes a packet and hands on the frames that it completes.
	frames func(p *rtp.Packet, at int64) error

	sequence uint32
	last     int64 // decoding time of the last frame
	duration uint32
	began    int64 // of the group
}

// newFeed is a feed of a media; nil for one that is not carried.
func newFeed(m *description.Media) (*feed, error) {
	f := &feed{kind: video, out: broadcast.NewTrack(videoPriority)}
	f.Name, f.Scale = "video", uint32(m.Formats[0].ClockRate())
	var err error
	switch t := m.Formats[0].(type) {
	case *format.H264:
		f.frames, err = f.h264(t)
	case *format.H265:
		f.frames, err = f.h265(t)
	case *format.MPEG4Audio:
		err = f.sound(&codecs.MPEG4Audio{Config: *t.Config})
		if err == nil {
			f.frames, err = f.aac(t)
		}
	case *format.Opus:
		err = f.sound(&codecs.Opus{ChannelCount: t.ChannelCount})
		if err == nil {
			f.frames, err = f.opus(t)
		}
	default:
		return nil, nil
	}
	return f, err
}

// packet takes one packet, of the time at.
func (f *feed) packet(p *rtp.Packet, at int64) error { return f.frames(p, at+origin*int64(f.Scale)) }

// sound makes f an audio track.
func (f *feed) sound(codec codecs.Codec) (err error) {
	f.kind, f.out = audio, broadcast.NewTrack(audioPriority)
	f.Track, err = packaging.NewTrack("audio", codec, f.Scale)
	return err
}

// aac decodes MPEG-4 audio; a packet may hold several frames.
func (f *feed) aac(t *format.MPEG4Audio) (func(*rtp.Packet, int64) error, error) {
	dec, err := t.CreateDecoder()
	return func(p *rtp.Packet, at int64) error {
		units, err := dec.Decode(p)
		if err != nil {
			return nil //nolint:nilerr // a frame in several packets, or a damaged one
		}
		for i, u := range units {
			if err := f.add(at+int64(i)*mpeg4audio.SamplesPerAccessUnit, mpeg4audio.SamplesPerAccessUnit, &fmp4.Sample{Payload: u}); err != nil {
				return err
			}
		}
		return nil
	}, err
}

// opus decodes Opus: one frame in each packet.
func (f *feed) opus(t *format.Opus) (func(*rtp.Packet, int64) error, error) {
	dec, err := t.CreateDecoder()
	return func(p *rtp.Packet, at int64) error {
		frame, err := dec.Decode(p)
		if err != nil {
			return nil //nolint:nilerr // a damaged one
		}
		return f.add(at, uint32(opus.PacketDuration2(frame)), &fmp4.Sample{Payload: frame})
	}, err
}

// add hands on a frame of sound; a second of them is a group.
func (f *feed) add(at int64, duration uint32, s *fmp4.Sample) error {
	begins := f.sequence == 0 || at-f.began >= int64(f.Scale)
	if begins {
		f.began = at
	}
	s.Duration = duration
	return f.chunk(at, s, begins)
}

// chunk hands on a frame.
func (f *feed) chunk(at int64, s *fmp4.Sample, begins bool) error {
	if at < 0 {
		return nil // earlier than origin covers
	}
	f.sequence++
	b, err := packaging.Chunk(f.sequence, uint64(at), s)
	if err != nil {
		return err
	}
	f.out.Append(b, begins)
	return nil
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

// h264 decodes H.264.
func (f *feed) h264(t *format.H264) (func(*rtp.Packet, int64) error, error) {
	dec, err := t.CreateDecoder()
	var order *h264.DTSExtractor
	var sps, pps []byte
	f.duration = f.Scale / 30
	return func(p *rtp.Packet, at int64) error {
		unit, err := dec.Decode(p)
		if err != nil {
			return nil //nolint:nilerr // a frame in several packets, or a damaged one
		}
		if order == nil {
			if !h264.IsRandomAccess(unit) {
				return nil
			}
			order = &h264.DTSExtractor{}
			order.Initialize()
			sps, pps = t.SafeParams()
		}
		for _, n := range unit {
			switch h264.NALUType(n[0] & 0x1f) {
			case h264.NALUTypeSPS:
				sps = n
			case h264.NALUTypePPS:
				pps = n
			}
		}
		if err := f.parameters(&codecs.H264{SPS: sps, PPS: pps}, sps, pps); err != nil {
			return err
		}
		dts, err := order.Extract(complete(unit, h264.IsRandomAccess(unit), sps, pps), at)
		if err != nil {
			return nil //nolint:nilerr // a frame that cannot be placed
		}
		s := &fmp4.Sample{}
		if err := s.FillH264(int32(at-dts), unit); err != nil {
			return err
		}
		return f.picture(dts, s)
	}, err
}

// h265 decodes H.265.
func (f *feed) h265(t *format.H265) (func(*rtp.Packet, int64) error, error) {
	dec, err := t.CreateDecoder()
	var order *h265.DTSExtractor
	var vps, sps, pps []byte
	f.duration = f.Scale / 30
	return func(p *rtp.Packet, at int64) error {
		unit, err := dec.Decode(p)
		if err != nil {
			return nil //nolint:nilerr // a frame in several packets, or a damaged one
		}
		if order == nil {
			if !h265.IsRandomAccess(unit) {
				return nil
			}
			order = &h265.DTSExtractor{}
			order.Initialize()
			vps, sps, pps = t.SafeParams()
		}
		for _, n := range unit {
			switch h265.NALUType(n[0] >> 1 & 0x3f) {
			case h265.NALUType_VPS_NUT:
				vps = n
			case h265.NALUType_SPS_NUT:
				sps = n
			case h265.NALUType_PPS_NUT:
				pps = n
			}
		}
		if err := f.parameters(&codecs.H265{VPS: vps, SPS: sps, PPS: pps}, vps, sps, pps); err != nil {
			return err
		}
		dts, err := order.Extract(complete(unit, h265.IsRandomAccess(unit), vps, sps, pps), at)
		if err != nil {
			return nil //nolint:nilerr // a frame that cannot be placed
		}
		s := &fmp4.Sample{}
		if err := s.FillH265(int32(at-dts), unit); err != nil {
			return err
		}
		return f.picture(dts, s)
	}, err
}

// complete is a frame with the parameter sets before it, if it is a key frame: some
// publishers send them apart, and the order of frames is in them.
func complete(unit [][]byte, key bool, sets ...[]byte) [][]byte {
	if !key {
		return unit
	}
	return append(sets, unit...)
}

// parameters makes the track known by its parameter sets, which it must keep: what
// was said in the catalog would not be so any more.
func (f *feed) parameters(codec codecs.Codec, sets ...[]byte) (err error) {
	for _, s := range sets {
		if len(s) == 0 {
			return errParameters
		}
	}
	if f.Init != nil {
		if !same(f.Codec, sets) {
			return errParameters
		}
		return nil
	}
	f.Track, err = packaging.NewTrack("video", codec, f.Scale)
	return err
}

// same reports whether a codec has these parameter sets.
func same(c codecs.Codec, sets [][]byte) bool {
	var have [][]byte
	switch c := c.(type) {
	case *codecs.H264:
		have = [][]byte{c.SPS, c.PPS}
	case *codecs.H265:
		have = [][]byte{c.VPS, c.SPS, c.PPS}
	}
	return bytes.Equal(bytes.Join(have, nil), bytes.Join(sets, nil))
}
