package rtsp

import (
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/format"
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
	began    int64    // of the group
	sets     [][]byte // parameter sets of pictures, in the order of their kinds
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
