package jobs

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/platform/events"
)

// Metering does what usage needs besides being counted: it sums minutes up into
// hours and days, finds accounts whose quota is used up or has come back, tells
// accounts what they have used of it, and drops what is old. It may run in every worker: each hour is summed once, and
// whoever comes second finds nothing to do.
type Metering struct {
	Store usage.Store // required
	// Events are told of quotas that are nearly used up; nil: nobody is.
	Events events.Emitter
	// Every is the pause between two rounds; 0: 20 s.
	Every time.Duration
	Log   *slog.Logger // nil: slog.Default
}

// Run works until ctx ends: at once, and then after each pause.
func (m Metering) Run(ctx context.Context) {
	pause := time.NewTicker(cmp.Or(m.Every, 20*time.Second))
	defer pause.Stop()
	for {
		m.Round(ctx)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// warn tells accounts what they have used.
func (m Metering) warn(ctx context.Context) (int, error) {
	if m.Events == nil {
		return 0, nil
	}
	return m.Store.Warn(ctx, m.Events)
}

// Round does everything once. A part that fails is logged and does not keep the
// others from their work. It returns how many things were done, by part.
func (m Metering) Round(ctx context.Context) map[string]int {
	log := cmp.Or(m.Log, slog.Default())
	done := map[string]int{}
	for _, part := range []struct {
		name string
		do   func(context.Context) (int, error)
	}{
		{"summed up", m.Store.RollUp},
		{"quotas changed", m.Store.Reconcile},
		{"warned", m.warn},
		{"dropped", m.Store.Prune},
	} {
		n, err := part.do(ctx)
		done[part.name] = n
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "metering failed", "part", part.name, "cause", err)
		}
	}
	return done
}
