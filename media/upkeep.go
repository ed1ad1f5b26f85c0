package media

import (
	"context"
	"log/slog"
	"time"
)

// upkeepEvery is the pause between two rounds of Upkeep.
const upkeepEvery = time.Minute

// Upkeep drops what nobody needs any more: the bytes of writers who died, old views,
// renders and calls. It fails the renders, searches for chapters and transcripts that
// nobody works on any more. It may run in every worker; whoever comes second finds
// nothing to do.
type Upkeep struct {
	parts parts
	log   *slog.Logger
}

// NewUpkeep returns the product's.
func NewUpkeep(c Config) Upkeep {
	c.fill()
	return Upkeep{newParts(c), c.log()}
}

// Run works until ctx ends: at once, and then every minute.
func (u Upkeep) Run(ctx context.Context) {
	pause := time.NewTicker(upkeepEvery)
	defer pause.Stop()
	for {
		u.Round(ctx)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// Round does everything once. A part that fails does not keep the other from its
// work.
func (u Upkeep) Round(ctx context.Context) {
	for name, do := range map[string]func(context.Context) (int64, error){
		"files": u.parts.assets.Sweep, "views": u.parts.assets.Views.Purge, "renders": u.parts.editor.Tend, "chapters": u.parts.chapters.Tend, "transcripts": u.parts.transcribe.Tend, "calls": u.parts.phone.Purge,
	} {
		if n, err := do(ctx); err != nil && ctx.Err() == nil {
			u.log.WarnContext(ctx, "media upkeep failed", "part", name, "cause", err)
		} else if n > 0 {
			u.log.InfoContext(ctx, "media upkeep", "part", name, "dropped", n)
		}
	}
}
