// Package rtsp takes live streams from the media engine, and gives it those of
// publishers, by RTSP on this machine: of what the engine speaks, the one that adds no
// delay and changes no frame.
package rtsp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/liberrors"
	"github.com/pion/rtp"
	"sluice.dev/sluice/media/live/moq/broadcast"
	"sluice.dev/sluice/media/live/moq/packaging"
)

// Engine is where the media engine speaks RTSP. All fields are required.
type Engine struct {
	Addr     string // on this machine
	Password string // which only the engine and we know
}

// ErrOff says that nobody publishes the stream.
var ErrOff = errors.New("the stream is not on air")

// errParameters says that a video came without parameter sets, or with others than
// it began with.
var errParameters = errors.New("the video has no parameter sets, or has changed them")

// settle is how long a stream may take until all its tracks are known.
const settle = 5 * time.Second

// address is that of a stream.
func (e Engine) address(id string) (*base.URL, error) {
	u := url.URL{Scheme: "rtsp", User: url.UserPassword("moq", e.Password), Host: e.Addr, Path: "/live/" + id}
	return base.ParseURL(u.String())
}

// client is a connection that is not open yet. No packet is larger than UDP would
// have it, so a frame of a megabyte is 700 of them.
func (e Engine) client() *gortsplib.Client {
	transport := gortsplib.TransportTCP
	return &gortsplib.Client{Scheme: "rtsp", Host: e.Addr, Transport: &transport, WriteQueueSize: 8192}
}

// Read reads the stream with the playback id until it ends or ctx does. ready gets
// the broadcast once, as soon as its tracks are known; it is closed when Read
// returns. It fails with ErrOff when nobody publishes the stream.
func (e Engine) Read(ctx context.Context, id string, ready func(*broadcast.Broadcast)) error {
	u, err := e.address(id)
	if err != nil {
		return err
	}
	c := e.client()
	if err := c.Start2(); err != nil {
		return fmt.Errorf("connect to the media engine: %w", err)
	}
	stop := context.AfterFunc(ctx, c.Close)
	defer stop()
	defer c.Close()
	desc, _, err := c.Describe(u)
	if bad, ok := errors.AsType[liberrors.ErrClientBadStatusCode](err); ok && bad.Code == base.StatusNotFound {
		return ErrOff
	}
	if err != nil {
		return fmt.Errorf("describe the stream: %w", err)
	}
	r := reader{client: c, ready: ready, failed: make(chan error, 1)}
	defer r.close()
	if err := r.setup(desc); err != nil {
		return err
	}
	if _, err := c.Play(nil); err != nil {
		return fmt.Errorf("play the stream: %w", err)
	}
	return r.wait(ctx)
}

// reader turns what comes into a broadcast.
type reader struct {
	client *gortsplib.Client
	feeds  []*feed
	known  chan struct{} // closed when the broadcast is ready
	ready  func(*broadcast.Broadcast)
	failed chan error

	live *broadcast.Broadcast
}

// setup asks for the tracks that can be carried.
func (r *reader) setup(desc *description.Session) error {
	r.known = make(chan struct{})
	var have [2]bool
	for _, m := range desc.Medias {
		f, err := newFeed(m)
		if err != nil {
			return err
		}
		if f == nil || have[f.kind] {
			continue
		}
		have[f.kind] = true
		if _, err := r.client.Setup(desc.BaseURL, m, 0, 0); err != nil {
			return fmt.Errorf("set up a track: %w", err)
		}
		r.feeds = append(r.feeds, f)
		r.client.OnPacketRTP(m, m.Formats[0], func(p *rtp.Packet) { r.packet(m, f, p) })
	}
	if len(r.feeds) == 0 {
		return packaging.ErrMedia
	}
	return nil
}

// packet takes one packet; the client calls it from one goroutine.
func (r *reader) packet(m *description.Media, f *feed, p *rtp.Packet) {
	at, ok := r.client.PacketPTS2(m, p)
	if !ok {
		return // before the first report of when this was
	}
	err := f.packet(p, at)
	if err == nil && r.live == nil {
		err = r.begin()
	}
	if err != nil {
		select {
		case r.failed <- err:
		default:
		}
	}
}

// begin makes the broadcast when all tracks are known.
func (r *reader) begin() error {
	tracks, described := map[string]*broadcast.Track{}, []packaging.Track{}
	for _, f := range r.feeds {
		if f.Init == nil {
			return nil
		}
		tracks[f.Name] = f.out
		described = append(described, f.Track)
	}
	catalogs, err := packaging.Catalogs(described)
	if err != nil {
		return err
	}
	r.live = broadcast.New(tracks, catalogs)
	r.ready(r.live)
	close(r.known)
	return nil
}

// wait waits for the end.
func (r *reader) wait(ctx context.Context) error {
	ended, why := make(chan struct{}), error(nil)
	go func() { why = r.client.Wait(); close(ended) }()
	late := time.NewTimer(settle)
	defer late.Stop()
	known := r.known
	for {
		select {
		case <-ended:
			return why
		case err := <-r.failed:
			r.client.Close()
			<-ended
			return err
		case <-ctx.Done():
			r.client.Close()
			<-ended
			return ctx.Err()
		case <-known:
			known = nil
			late.Stop()
		case <-late.C:
			r.client.Close()
			<-ended
			return errParameters
		}
	}
}

// close ends the broadcast; no packet comes any more.
func (r *reader) close() {
	if r.live != nil {
		r.live.Close()
	}
}
