package media

import (
	"context"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/live/engine"
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

// RunEngine runs the media engine beside the product until ctx ends, and with it
// MoQ. The product's Config should say that they are there: Endpoints with Available,
// and EngineHLS. One engine serves one database.
func RunEngine(ctx context.Context, c Config, e engine.Config, m MoQ) error {
	if m.Addr == "" {
		e.RTSP = "" // nothing else speaks it
		return engine.Run(ctx, e, NewWatcher(c), c.Respond)
	}
	c.fill()
	e.Secret = ident.NewSecret("auth").Text
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return engine.Run(ctx, e, NewWatcher(c), c.Respond) })
	both.Go(func() error { return serveMoQ(ctx, c, m, e) })
	return both.Wait()
}
