package jobs

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/controlplane/accounts/oauth"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Housekeeping drops what nobody needs any more: old tombstones of the key feed,
// keys that ended long ago, answers kept for repeated requests, sessions and
// grants that have run out. It also marks accounts whose invoices have become overdue, and
// replaces the key that signs sessions once a month. It may run in every worker;
// whoever comes second finds nothing to do.
type Housekeeping struct {
	DB       postgres.DB       // required
	Sessions *sessions.Service // required
	Apps     *oauth.Service    // required
	// Every is the pause between two rounds; 0: a minute.
	Every time.Duration
	Now   func() time.Time // nil: time.Now
	Log   *slog.Logger     // nil: slog.Default
}

// Run works until ctx ends: at once, and then after each pause.
func (h Housekeeping) Run(ctx context.Context) {
	pause := time.NewTicker(cmp.Or(h.Every, time.Minute))
	defer pause.Stop()
	for {
		h.Round(ctx)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// Round does everything once. A part that fails is logged and does not keep the
// others from their work. It returns how many things were found, by part.
func (h Housekeeping) Round(ctx context.Context) map[string]int {
	now := h.Now
	if now == nil {
		now = time.Now
	}
	log := cmp.Or(h.Log, slog.Default())
	found := map[string]int{}
	for _, part := range []struct {
		name string
		do   func() (int, error)
	}{
		{"overdue", func() (int, error) { return billing.Store{DB: h.DB, Now: now}.Reconcile(ctx) }},
		{"tombstones", func() (int, error) { return keyfeed.Prune(ctx, h.DB, now().Add(-keyfeed.TombstoneAge)) }},
		{"keys", func() (int, error) { return apikeys.Store{DB: h.DB, Now: now}.Purge(ctx) }},
		{"answers", func() (int, error) { return idempotency.Purge(ctx, h.DB, now()) }},
		{"signing keys added", func() (int, error) { return h.Sessions.RotateSigningKey(ctx) }},
		{"grants", func() (int, error) { return h.Apps.Purge(ctx) }},
		{"sessions", func() (int, error) { return h.Sessions.Purge(ctx) }},
	} {
		n, err := part.do()
		found[part.name] = n
		switch {
		case ctx.Err() != nil:
			return found
		case err != nil:
			log.WarnContext(ctx, "housekeeping failed", "part", part.name, "cause", err)
		case n > 0:
			log.InfoContext(ctx, "housekeeping", "part", part.name, "count", n)
		}
	}
	return found
}
