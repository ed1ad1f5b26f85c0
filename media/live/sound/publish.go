package sound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/format"
	"github.com/bluenviron/gortsplib/v4/pkg/format/rtpsimpleaudio"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/opus"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mpegts"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mpegts/codecs"
	"sluice.dev/sluice/media/files/ffmpeg"
)

// Publish makes what pump gives the sound of a stream until ctx ends. pump calls its
// argument with interleaved frames of one or two channels as time goes on, and returns
// its error. Publish fails with ErrEngine when the engine closes the connection, or does
// not take it.
func Publish(ctx context.Context, tool ffmpeg.Tool, p Point, channels int, pump func(context.Context, func([]float32) error) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rate := "96k"
	if channels == 2 {
		rate = "160k"
	}
	args := append(pcm(channels), "-i", "pipe:0", "-c:a", "libopus", "-b:a", rate, "-application", "audio", "-frame_duration", "20",
		"-f", "mpegts", "-pes_payload_size", "0", "-flush_packets", "1", "-muxdelay", "0", "-muxpreload", "0", "-mpegts_flags", "+pat_pmt_at_frames", "pipe:1")
	err := convert(ctx, tool, args,
		func(ctx context.Context, w io.Writer) error {
			var raw []byte
			return pump(ctx, func(frames []float32) error {
				raw = bytesOf(raw[:0], frames)
				_, err := w.Write(raw)
				return err
			})
		},
		func(r io.Reader) error {
			o := outlet{point: p, channels: channels, lost: cancel}
			defer o.close()
			return o.run(r)
		})
	if cause := context.Cause(ctx); errors.Is(cause, ErrEngine) {
		return cause
	}
	return err
}

// outlet hands packets of Opus to the engine.
type outlet struct {
	point    Point
	channels int
	lost     context.CancelCauseFunc // is told when the engine has closed the connection

	client *gortsplib.Client
	closed atomic.Bool // by us
	media  *description.Media
	rtp    *rtpsimpleaudio.Encoder
	time   uint32
}

// run reads ffmpeg's stream until it ends.
func (o *outlet) run(r io.Reader) error {
	in := &mpegts.Reader{R: r}
	if err := in.Initialize(); err != nil {
		return fmt.Errorf("read what ffmpeg has made: %w", err)
	}
	in.OnDecodeError(func(error) {})
	for _, t := range in.Tracks() {
		if _, ok := t.Codec.(*codecs.Opus); ok {
			in.OnDataOpus(t, func(_ int64, packets [][]byte) error { return o.send(packets) })
		}
	}
	if err := o.open(); err != nil {
		return err
	}
	for {
		if err := in.Read(); err != nil {
			return fmt.Errorf("read what ffmpeg has made: %w", err)
		}
	}
}

// open begins to publish.
func (o *outlet) open() error {
	f := &format.Opus{PayloadTyp: 96, ChannelCount: o.channels}
	o.media = &description.Media{Type: description.MediaTypeAudio, Formats: []format.Format{f}}
	var err error
	if o.rtp, err = f.CreateEncoder(); err != nil {
		return err
	}
	o.client = o.point.client()
	if err := o.client.StartRecording(o.point.address().String(), &description.Session{Medias: []*description.Media{o.media}}); err != nil {
		o.client = nil
		return fmt.Errorf("%w: %s", ErrEngine, o.point.said(err))
	}
	c := o.client
	go func() {
		err := c.Wait()
		if !o.closed.Load() {
			o.lost(fmt.Errorf("%w: %s", ErrEngine, o.point.said(err)))
		}
	}()
	return nil
}

// send hands packets on.
func (o *outlet) send(packets [][]byte) error {
	for _, p := range packets {
		packet, err := o.rtp.Encode(p)
		if err != nil {
			return err
		}
		packet.Timestamp += o.time
		o.time += uint32(opus.PacketDuration2(p))
		if err := o.client.WritePacketRTP(o.media, packet); err != nil {
			return fmt.Errorf("%w: %s", ErrEngine, o.point.said(err))
		}
	}
	return nil
}

func (o *outlet) close() {
	o.closed.Store(true)
	if o.client != nil {
		o.client.Close()
	}
}

// said is an error of the client in a bounded number of bytes, without the password,
// which stands in addresses.
func (p Point) said(err error) string {
	const most = 200
	text := err.Error()
	if p.Password != "" {
		text = strings.ReplaceAll(text, p.Password, "…")
	}
	text = strconv.QuoteToASCII(text)
	text = text[1 : len(text)-1]
	if len(text) > most {
		text = text[:most]
	}
	return text
}
