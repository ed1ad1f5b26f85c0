package rtsp

import (
	"fmt"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/format"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mp4/codecs"
	"github.com/pion/rtp"
	"sluice.dev/sluice/media/live/moq/packaging"
)

// Publisher gives a stream to the engine. Its methods may be called at once.
type Publisher struct {
	client *gortsplib.Client
	tracks []*outlet
}

// outlet is one track of a publisher; one goroutine writes it.
type outlet struct {
	packaging.Track
	media  *description.Media
	clock  uint32
	encode func(frame packaging.Frame) ([]*rtp.Packet, error)
	first  *uint64 // time of the first frame
	began  time.Time
}

// Publish begins to publish tracks as the stream with the playback id. It fails when
// the engine does not take them.
func (e Engine) Publish(id string, tracks []packaging.Track) (*Publisher, error) {
	u, err := e.address(id)
	if err != nil {
		return nil, err
	}
	p := &Publisher{client: e.client()}
	desc := &description.Session{}
	for i, t := range tracks {
		o, err := newOutlet(t, uint8(96+i))
		if err != nil {
			return nil, err
		}
		p.tracks = append(p.tracks, o)
		desc.Medias = append(desc.Medias, o.media)
	}
	if err := p.client.StartRecording(u.String(), desc); err != nil {
		return nil, fmt.Errorf("publish to the media engine: %w", err)
	}
	return p, nil
}

// Wait waits until the engine does not take the stream any more, and returns why.
func (p *Publisher) Wait() error { return p.client.Wait() }

// Close ends the stream.
func (p *Publisher) Close() { p.client.Close() }

// Write gives the engine a frame of the track i.
func (p *Publisher) Write(i int, f packaging.Frame) error {
	o := p.tracks[i]
	packets, err := o.encode(f)
	if err != nil {
		return fmt.Errorf("%w: %w", packaging.ErrMedia, err)
	}
	if o.first == nil {
		o.first, o.began = &f.Time, time.Now()
	}
	since := o.Duration(f.Time - min(f.Time, *o.first))
	at := uint32(packaging.Rescale(f.Time, uint64(o.clock), uint64(o.Scale)))
	for _, packet := range packets {
		packet.Timestamp += at
		if err := p.client.WritePacketRTPWithNTP(o.media, packet, o.began.Add(since)); err != nil {
			return err
		}
	}
	return nil
}

// newOutlet is the outlet of a track.
func newOutlet(t packaging.Track, payload uint8) (*outlet, error) {
	o := &outlet{Track: t}
	var f format.Format
	var err error
	switch c := t.Codec.(type) {
	case *codecs.H264:
		h := &format.H264{PayloadTyp: payload, SPS: c.SPS, PPS: c.PPS, PacketizationMode: 1}
		enc, bad := h.CreateEncoder()
		f, err, o.encode = h, bad, units(func(u [][]byte) ([]*rtp.Packet, error) { return enc.Encode(u) })
	case *codecs.H265:
		h := &format.H265{PayloadTyp: payload, VPS: c.VPS, SPS: c.SPS, PPS: c.PPS}
		enc, bad := h.CreateEncoder()
		f, err, o.encode = h, bad, units(func(u [][]byte) ([]*rtp.Packet, error) { return enc.Encode(u) })
	case *codecs.MPEG4Audio:
		config := c.Config
		a := &format.MPEG4Audio{PayloadTyp: payload, Config: &config, SizeLength: 13, IndexLength: 3, IndexDeltaLength: 3}
		enc, bad := a.CreateEncoder()
		f, err, o.encode = a, bad, func(f packaging.Frame) ([]*rtp.Packet, error) { return enc.Encode([][]byte{f.Payload}) }
	case *codecs.Opus:
		a := &format.Opus{PayloadTyp: payload, ChannelCount: c.ChannelCount}
		enc, bad := a.CreateEncoder()
		f, err, o.encode = a, bad, func(f packaging.Frame) ([]*rtp.Packet, error) {
			p, err := enc.Encode(f.Payload)
			return []*rtp.Packet{p}, err
		}
	default:
		return nil, packaging.ErrMedia
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", packaging.ErrMedia, err)
	}
	kind := description.MediaTypeAudio
	if t.Codec.IsVideo() {
		kind = description.MediaTypeVideo
	}
	o.clock = uint32(f.ClockRate())
	o.media = &description.Media{Type: kind, Formats: []format.Format{f}}
	return o, nil
}

// units encodes a frame of NAL units.
func units(encode func([][]byte) ([]*rtp.Packet, error)) func(packaging.Frame) ([]*rtp.Packet, error) {
	return func(f packaging.Frame) ([]*rtp.Packet, error) {
		u, err := f.NALUnits()
		if err != nil {
			return nil, err
		}
		return encode(u)
	}
}
