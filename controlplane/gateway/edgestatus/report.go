package edgestatus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// maxFiles bounds the files that an edge names.
const maxFiles = 32

// Report is what an edge says of itself. Its wire form is envoy/relay's.
type Report struct {
	Edge  string `json:"edge"`
	Build string `json:"build"` // of the agent
	// State is starting, live, cached (it serves from its saved state, as no
	// replica answers) or closed.
	State string `json:"state"`
	// StateAge is how many seconds ago a replica last confirmed what it holds.
	StateAge float64 `json:"state_age_seconds"`
	Uptime   float64 `json:"uptime_seconds"` // of the agent
	// Epoch counts its Envoys since the agent started: 0 the first, and one more
	// after each hot restart or crash.
	EnvoyEpoch   int64 `json:"envoy_epoch"`
	FeedEpoch    int64 `json:"feed_epoch"`
	FeedPosition int64 `json:"feed_position"` // of its Envoy
	// Limits is how it limits: shared (by what all edges have counted), share (cut
	// off from them: by its own count and a fair share) or alone.
	Limits      string  `json:"limits"`
	LimitsEdges int64   `json:"limits_edges"`       // that share limits, as far as it knows
	LimitsAge   float64 `json:"limits_age_seconds"` // since it heard of the others' counts; -1: never
	// Outdated names files, Envoy's binary or filters of it, that were changed since
	// its Envoy was started from them: SIGHUP to the agent lets another take over.
	Outdated []string `json:"outdated,omitempty"`
}

// check reports every fault of r.
func (r Report) check() error {
	var details []decision.Detail
	if r.Edge == "" || len(r.Edge) > 256 {
		details = append(details, decision.Detail{Field: "edge", Issue: "is not a name", Expected: "1 to 256 bytes"})
	}
	if len(r.Outdated) > maxFiles || slices.ContainsFunc(r.Outdated, func(name string) bool { return len(name) > 256 }) {
		details = append(details, decision.Detail{Field: "outdated", Issue: "has too many names, or too long ones", Expected: "at most 32 of 256 bytes"})
	}
	for field, n := range map[string]int64{"feed_epoch": r.FeedEpoch, "feed_position": r.FeedPosition, "envoy_epoch": r.EnvoyEpoch, "limits_edges": r.LimitsEdges} {
		if n < 0 {
			details = append(details, decision.Detail{Field: field, Issue: "is negative", Expected: "0 or more"})
		}
	}
	return apierror.Invalid(details)
}

// Report stores what an edge says of itself.
func (s Store) Report(ctx context.Context, r Report) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the report of edge %q: %w", r.Edge, err)
	}
	_, err = s.DB.Exec(ctx, `
		INSERT INTO edges (id, last_seen, reported_at, feed_epoch, feed_position, report) VALUES ($1, now(), now(), $2, $3, $4)
		ON CONFLICT (id) DO UPDATE SET
			last_seen = now(), reported_at = now(), report = excluded.report,
			feed_epoch = excluded.feed_epoch, feed_position = excluded.feed_position`, r.Edge, r.FeedEpoch, r.FeedPosition, raw)
	if err != nil {
		return fmt.Errorf("store the report of edge %q: %w", r.Edge, err)
	}
	return nil
}
