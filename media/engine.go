package media

import (
	"context"
	"log/slog"
	"sync"

	"sluice.dev/sluice/media/live/engine"
	"sluice.dev/sluice/media/live/transports"
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
// engine serves one database.
func RunEngine(ctx context.Context, c Config, e engine.Config) error {
	w := NewWatcher(c)
	if e.RTSP == "" {
		return engine.Run(ctx, e, w, c.Respond)
	}
	links := &transports.Supervisor{DB: c.DB, Streams: w.Streams, Settings: c.Transports, FFmpeg: newParts(c).assets.FFmpeg, RTSP: e.RTSP, Log: w.Log, Now: w.Now}
	e.Links, w.Kicked = links, links.Kicked
	ctx, cancel := context.WithCancel(ctx)
	var both sync.WaitGroup
	defer both.Wait()
	defer cancel()
	both.Go(func() { links.Run(ctx) })
	return engine.Run(ctx, e, w, c.Respond)
}
