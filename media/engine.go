package media

import (
	"context"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/media/live/engine"
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
	if telephony == nil {
		return engine.Run(ctx, e, NewWatcher(c), c.Respond)
	}
	calls := NewTelephony(c, *telephony)
	e.Publishes = calls.Publishes
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return engine.Run(ctx, e, NewWatcher(c), c.Respond) })
	group.Go(func() error { return calls.Run(ctx) })
	return group.Wait()
}

// NewTelephony returns what takes and makes the product's telephone calls, by t, whose
// Service, FFmpeg, Dir and Log are c's.
func NewTelephony(c Config, t sip.Config) *sip.Server {
	c.fill()
	t.Service, t.FFmpeg, t.Dir, t.Log = newParts(c).phone, c.FFmpeg, c.Scratch, c.Respond.Log
	return sip.New(t)
}
