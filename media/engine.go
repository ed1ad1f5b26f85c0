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
	return &engine.Watcher{Streams: p.streams, Assets: p.assets, Views: p.assets.Views, Plans: c.Plans, Reader: p.reader, Log: c.log(), Now: c.Now}
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

// part is one of those that run besides the engine.
type part struct {
	own func(engine.Own) bool // whether it is this part that asks the engine
	run func(context.Context) error
}

// RunEngine runs the media engine beside the product until ctx ends, or a part of it
// fails. The product's Config should say that it is there: Endpoints with Available, and
// EngineHLS. One engine serves one database.
func RunEngine(ctx context.Context, c Config, e engine.Config, b Beside) error {
	c.fill()
	w := NewWatcher(c)
	var parts []part
	if b.Telephony != nil {
		parts = append(parts, telephony(c, *b.Telephony))
	}
	if e.RTSP != "" {
		parts = append(parts, links(c, w, e.RTSP), captioned(c, w, e.RTSP))
	}
	if b.MoQ.Addr != "" {
		parts = append(parts, moq(c, b.MoQ, e.RTSP))
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range parts {
		e.Own = append(e.Own, p.own)
		group.Go(func() error { return p.run(ctx) })
	}
	group.Go(func() error { return engine.Run(ctx, e, w, c.Respond) })
	return group.Wait()
}

// telephony publishes the sound of calls.
func telephony(c Config, t sip.Config) part {
	calls := NewTelephony(c, t)
	return part{
		own: func(o engine.Own) bool {
			return o.Protocol == "rtmp" && o.Action == "publish" && calls.Publishes(o.Path, o.Password)
		},
		run: calls.Run,
	}
}

// links publishes and reads what streams take of the operator's network, and send to it.
func links(c Config, w *engine.Watcher, rtsp string) part {
	s := &transports.Supervisor{DB: c.DB, Streams: w.Streams, Settings: c.Transports, FFmpeg: newParts(c).assets.FFmpeg, RTSP: rtsp, Log: w.Log, Now: w.Now}
	w.Kicked = s.Kicked
	return part{
		own: func(o engine.Own) bool { return o.Protocol == "rtsp" && s.Allows(o.User, o.Password, o.Action, o.Path) },
		run: func(ctx context.Context) error { s.Run(ctx); return nil },
	}
}

// captioned reads the sound of streams whose captions are made while they are on air.
func captioned(c Config, w *engine.Watcher, rtsp string) part {
	p := newParts(c)
	s := &listener.Supervisor{Store: p.captions.OnAir, Keeper: listener.Keeper{Store: p.captions.OnAir, Captions: p.captions, Transcribe: p.transcribe},
		Product: p.transcribe.Product, FFmpeg: p.assets.FFmpeg, Places: fairshare.New(fairshare.Config{Places: listener.Places}), RTSP: rtsp, Log: w.Log}
	return part{
		own: func(o engine.Own) bool { return o.Protocol == "rtsp" && s.Allows(o.User, o.Password, o.Action, o.Path) },
		run: func(ctx context.Context) error { s.Run(ctx); return nil },
	}
}

// moq publishes and reads for sessions of MoQ, whose users it has checked.
func moq(c Config, m MoQ, addr string) part {
	secret := ident.NewSecret("auth").Text
	return part{
		own: func(o engine.Own) bool {
			return o.Protocol == "rtsp" && subtle.ConstantTimeCompare([]byte(o.Password), []byte(secret)) == 1
		},
		run: func(ctx context.Context) error { return serveMoQ(ctx, c, m, rtsp.Engine{Addr: addr, Password: secret}) },
	}
}

// NewTelephony returns what takes and makes the product's telephone calls, by t, whose
// Service, FFmpeg, Dir and Log are c's.
func NewTelephony(c Config, t sip.Config) *sip.Server {
	c.fill()
	t.Service, t.FFmpeg, t.Dir, t.Log = newParts(c).phone, c.FFmpeg, c.Scratch, c.Respond.Log
	return sip.New(t)
}
