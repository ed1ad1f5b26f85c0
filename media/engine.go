package media

import (
	"context"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/media/live/engine"
	"sluice.dev/sluice/media/live/transports"
	"sluice.dev/sluice/media/phone/sip"
)

// NewWatcher returns what keeps the product in step with a media engine; RunEngine
// sets its API and Dir.
func NewWatcher(c Config) *engine.Watcher {
	c.fill()
	p := newParts(c)
	log := c.Respond.Log
	if log == nil {
		log = slog.Default()
	}
	return &engine.Watcher{Streams: p.streams, Assets: p.assets, Views: p.assets.Views, Plans: c.Plans, Log: log, Now: c.Now}
}

// RunEngine runs the media engine beside the product until ctx ends. The product's
// Config should say that it is there: Endpoints with Available, and EngineHLS. One
// engine serves one database. telephony says how telephones reach it; nil: they do not.
func RunEngine(ctx context.Context, c Config, e engine.Config, telephony *sip.Config) error {
	w := NewWatcher(c)
	group, ctx := errgroup.WithContext(ctx)
	if telephony != nil {
		calls := NewTelephony(c, *telephony)
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
