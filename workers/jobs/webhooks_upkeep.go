package jobs

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"sluice.dev/sluice/workers/webhooks/delivery"
)

// WebhookUpkeep does, beside the jobs, what must go on when a worker has died:
// it may run in every process, and any one suffices.
type WebhookUpkeep struct {
	Deliverer *delivery.Deliverer // required
	// Every is how often jobs of dead workers are looked for; 0: 2 s.
	Every time.Duration
	// StuckAfter is when a running job counts as one; 0: 25 s. It must be more
	// than a job may take.
	StuckAfter time.Duration
	// Retention is how long events are kept with their deliveries; 0: 30 days.
	Retention time.Duration
	Now       func() time.Time // nil: time.Now
	Log       *slog.Logger     // nil: slog.Default
}

// Run works until ctx ends.
func (u WebhookUpkeep) Run(ctx context.Context) {
	revive := time.NewTicker(cmp.Or(u.Every, 2*time.Second))
	defer revive.Stop()
	prune := time.NewTicker(time.Hour)
	defer prune.Stop()
	_, err := u.Prune(ctx)
	for {
		if err != nil && ctx.Err() == nil {
			cmp.Or(u.Log, slog.Default()).WarnContext(ctx, "webhook upkeep", "cause", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-revive.C:
			_, err = u.Deliverer.Revive(ctx, cmp.Or(u.StuckAfter, webhookJobTimeout+5*time.Second))
		case <-prune.C:
			_, err = u.Prune(ctx)
		}
	}
}

// Prune removes the events that have been kept for long enough, and returns how
// many it removed.
func (u WebhookUpkeep) Prune(ctx context.Context) (int, error) {
	now := time.Now
	if u.Now != nil {
		now = u.Now
	}
	return u.Deliverer.Prune(ctx, now().Add(-cmp.Or(u.Retention, 30*24*time.Hour)))
}
