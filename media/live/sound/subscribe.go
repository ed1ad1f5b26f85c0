package sound

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/format"
	"github.com/bluenviron/gortsplib/v4/pkg/liberrors"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mpegts"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mpegts/codecs"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mpegts/substructs"
	"github.com/pion/rtp"
	"sluice.dev/sluice/media/files/ffmpeg"
)

// ErrSilent says that a stream has no publisher, or none with sound that can be sent on.
var ErrSilent = errors.New("the stream has no sound")

// waiting is how many packets of a stream may wait for ffmpeg: ten seconds.
const waiting = 512

// Subscribe hands the sound of a stream to write, as interleaved frames of so many
// channels, until ctx ends. It fails with ErrSilent while the stream has none, and with
// ErrEngine when the engine closes the connection.
func Subscribe(ctx context.Context, tool ffmpeg.Tool, p Point, channels int, write func([]float32)) error {
	in := inlet{point: p, units: make(chan unit, waiting), ended: make(chan error, 1)}
	if err := in.open(); err != nil {
		return err
	}
	defer in.client.Close()
	args := append([]string{"-f", "mpegts", "-i", "pipe:0", "-map", "0:a:0", "-vn", "-flush_packets", "1"}, append(pcm(channels), "pipe:1")...)
	return convert(ctx, tool, args, in.run, func(r io.Reader) error {
		raw := make([]byte, 4*channels*Block)
		var frames []float32
		for {
			if _, err := io.ReadFull(r, raw); err != nil {
				return fmt.Errorf("read what ffmpeg has made: %w", err)
			}
			frames = framesOf(frames[:0], raw)
			write(frames)
		}
	})
}

// unit is what one packet of a stream holds, and its time in the track's clock.
type unit struct {
	at     int64
	frames [][]byte
}

// inlet takes the sound of a stream from the engine.
type inlet struct {
	point  Point
	client *gortsplib.Client
	track  *mpegts.Track
	clock  int64
	units  chan unit
	ended  chan error
}

// open begins to take.
func (i *inlet) open() (err error) {
	c := i.point.client()
	if err := c.Start2(); err != nil {
		return fmt.Errorf("%w: %s", ErrEngine, i.point.said(err))
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	desc, _, err := c.Describe(i.point.address())
	if status, ok := errors.AsType[liberrors.ErrClientBadStatusCode](err); ok && status.Code == base.StatusNotFound {
		return ErrSilent
	}
	if err != nil {
		return fmt.Errorf("%w: %s", ErrEngine, i.point.said(err))
	}
	m, f, decode, err := i.choose(desc)
	if err != nil {
		return err
	}
	if _, err := c.Setup(desc.BaseURL, m, 0, 0); err != nil {
		return fmt.Errorf("%w: %s", ErrEngine, i.point.said(err))
	}
	c.OnPacketRTP(m, f, func(p *rtp.Packet) {
		at, ok := c.PacketPTS2(m, p)
		frames, err := decode(p)
		if !ok || err != nil {
			return
		}
		select {
		case i.units <- unit{at, frames}:
		default: // ffmpeg does not keep up: what follows is later than it should be
		}
	})
	if _, err := c.Play(nil); err != nil {
		return fmt.Errorf("%w: %s", ErrEngine, i.point.said(err))
	}
	i.client = c
	go func() { i.ended <- fmt.Errorf("%w: %s", ErrEngine, i.point.said(c.Wait())) }()
	return nil
}

// choose finds a track of sound that ffmpeg can be given.
func (i *inlet) choose(desc *description.Session) (*description.Media, format.Format, func(*rtp.Packet) ([][]byte, error), error) {
	for _, m := range desc.Medias {
		for _, f := range m.Formats {
			decode, codec, err := reader(f)
			if err != nil {
				return nil, nil, nil, err
			}
			if codec != nil {
				i.track, i.clock = &mpegts.Track{Codec: codec}, int64(f.ClockRate())
				return m, f, decode, nil
			}
		}
	}
	return nil, nil, nil, ErrSilent
}

// reader is how the packets of a format are read; without a codec it is none of sound.
func reader(f format.Format) (func(*rtp.Packet) ([][]byte, error), codecs.Codec, error) {
	switch f := f.(type) {
	case *format.Opus:
		d, err := f.CreateDecoder()
		return func(p *rtp.Packet) ([][]byte, error) {
			one, err := d.Decode(p)
			return [][]byte{one}, err
		}, &codecs.Opus{Desc: &substructs.OpusAudioDescriptor{ChannelConfigCode: uint8(f.ChannelCount)}}, err
	case *format.MPEG4Audio:
		if f.Config == nil {
			return nil, nil, nil
		}
		d, err := f.CreateDecoder()
		return func(p *rtp.Packet) ([][]byte, error) { return d.Decode(p) }, &codecs.MPEG4Audio{Config: *f.Config}, err
	case *format.MPEG1Audio:
		d, err := f.CreateDecoder()
		return func(p *rtp.Packet) ([][]byte, error) { return d.Decode(p) }, &codecs.MPEG1Audio{}, err
	}
	return nil, nil, nil
}

// run writes what comes as MPEG-TS, until the engine closes the connection.
func (i *inlet) run(ctx context.Context, w io.Writer) error {
	out := &mpegts.Writer{W: w, Tracks: []*mpegts.Track{i.track}}
	if err := out.Initialize(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-i.ended:
			return err
		case u := <-i.units:
			if err := i.write(out, u); err != nil {
				return err
			}
		}
	}
}

// write writes one unit.
func (i *inlet) write(out *mpegts.Writer, u unit) error {
	at := u.at * 90000 / i.clock
	switch i.track.Codec.(type) {
	case *codecs.Opus:
		return out.WriteOpus(i.track, at, u.frames)
	case *codecs.MPEG4Audio:
		return out.WriteMPEG4Audio(i.track, at, u.frames)
	default:
		return out.WriteMPEG1Audio(i.track, at, u.frames)
	}
}
