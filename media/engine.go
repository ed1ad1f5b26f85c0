package media

import (
	"context"
	"crypto/subtle"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/captions/listener"
	"sluice.dev/sluice/media/live/engine"
	"sluice.dev/sluice/media/live/moq/rtsp"
	"sluice.dev/sluice/media/live/transports"
	"sluice.dev/sluice/media/phone/sip"
	"sluice.dev/sluice/platform/limits/fairshare"
)

// NewWatcher returns what keeps the product in step with a media engine; RunEngine
// sets its API and Dir.
func NewWatcher(c Config) *engine.Watcher {
	c.fill()
	p := newParts(c)
	return &engine.Watcher{Streams: p.streams, Assets: p.assets, Views: p.assets.Views, Plans: c.Plans, Log: c.log(), Now: c.Now}
}

// log is where the product says what it does.
func (c *Config) log() *slog.Logger {
	if c.Respond.Log != nil {
		return c.Respond.Log
	}
	return slog.Default()
}

// Beside is what runs in the media engine's process besides it.
type Beside struct {
	Telephony *sip.Config // how telephones reach streams; nil: they do not
	MoQ       MoQ
}

// RunEngine runs the media engine beside the product until ctx ends. The product's
// Config should say that it is there: Endpoints with Available, and EngineHLS. One
// engine serves one database.
func RunEngine(ctx context.Context, c Config, e engine.Config, b Beside) error {
	c.fill()
	w := NewWatcher(c)
	group, ctx := errgroup.WithContext(ctx)
	if b.Telephony != nil {
		calls := NewTelephony(c, *b.Telephony)
		e.Own = append(e.Own, func(o engine.Own) bool {
			return o.Protocol == "rtmp" && o.Action == "publish" && calls.Publishes(o.Path, o.Password)
		})
		group.Go(func() error { return calls.Run(ctx) })
	}
	if e.RTSP != "" {
		links := &transports.Supervisor{DB: c.DB, Streams: w.Streams, Settings: c.Transports, FFmpeg: newParts(c).assets.FFmpeg, RTSP: e.RTSP, Log: w.Log, Now: w.Now}
		w.Kicked = links.Kicked
		e.Own = append(e.Own, func(o engine.Own) bool {
			return o.Protocol == "rtsp" && links.Allows(o.User, o.Password, o.Action, o.Path)
		})
		group.Go(func() error { links.Run(ctx); return nil })
	}
	if e.RTSP != "" {
		p := newParts(c)
		heard := &listener.Supervisor{Store: p.captions.OnAir, Keeper: listener.Keeper{Store: p.captions.OnAir, Captions: p.captions, Transcribe: p.transcribe}, Product: p.transcribe.Product,
			FFmpeg: p.assets.FFmpeg, Places: fairshare.New(fairshare.Config{Places: listener.Places}), RTSP: e.RTSP, Log: w.Log}
		e.Own = append(e.Own, func(o engine.Own) bool {
			return o.Protocol == "rtsp" && heard.Allows(o.User, o.Password, o.Action, o.Path)
		})
		group.Go(func() error { heard.Run(ctx); return nil })
	}
	if b.MoQ.Addr != "" {
		secret := ident.NewSecret("auth").Text // of its sessions, whose users it has checked
		e.Own = append(e.Own, func(o engine.Own) bool {
			return o.Protocol == "rtsp" && subtle.ConstantTimeCompare([]byte(o.Password), []byte(secret)) == 1
		})
		group.Go(func() error { return serveMoQ(ctx, c, b.MoQ, rtsp.Engine{Addr: e.RTSP, Password: secret}) })
	}
	group.Go(func() error { return engine.Run(ctx, e, w, c.Respond) })
	return group.Wait()
}

// NewTelephony returns what takes and makes the product's telephone calls, by t, whose
// Service, FFmpeg, Dir and Log are c's.
func NewTelephony(c Config, t sip.Config) *sip.Server {
	c.fill()
	t.Service, t.FFmpeg, t.Dir, t.Log = newParts(c).phone, c.FFmpeg, c.Scratch, c.Respond.Log
	return sip.New(t)
}
