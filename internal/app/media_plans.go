package app

import (
	"context"
	"log/slog"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/media/legacy"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/workers/webhooks"
)

// mediaPlans are the media limits of plans in the configuration in force, at most a second
// behind. While there is none at hand, plans have what is built in.
type mediaPlans struct{ current *config.Current }

// Of implements plans.Source.
func (m mediaPlans) Of(plan string) plans.Limits {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	v, err := m.current.Get(ctx)
	if err != nil {
		slog.Warn("plans have the media limits that are built in", "cause", err)
	}
	l := v.Document.MediaOf(plan)
	return plans.Limits{ConcurrentStreams: l.Streams, BitrateKbps: l.BitrateKbps, FileBytes: int64(l.File), StorageBytes: int64(l.Storage), CallsPerDay: l.CallsOut()}
}

// subscriber lets an account that moves in take its webhooks along.
func subscriber(s *webhooks.Service) legacy.Subscriber {
	return func(ctx context.Context, account, url string, events []string) (legacy.Subscription, error) {
		made, _, err := s.Adopt(ctx, account, webhooks.Create{URL: url, Events: events, Description: "Taken over from another provider"})
		return legacy.Subscription{ID: made.ID, Status: string(made.Status), Secret: made.Secret}, err
	}
}
