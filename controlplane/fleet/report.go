package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/postgres"
	"sluice.dev/sluice/controlplane/respond"
	"sluice.dev/sluice/filters/decision"
)

// ReportPath is where edges report, on the listener of the key feed.
const ReportPath = "/fleet/v1/report"

// maxReport bounds a report, in bytes.
const maxReport = 16 << 10

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
}

// check reports every fault of r.
func (r Report) check() error {
	var details []decision.Detail
	if r.Edge == "" || len(r.Edge) > 256 {
		details = append(details, decision.Detail{Field: "edge", Issue: "is not a name", Expected: "1 to 256 bytes"})
	}
	for field, n := range map[string]int64{"feed_epoch": r.FeedEpoch, "feed_position": r.FeedPosition, "envoy_epoch": r.EnvoyEpoch, "limits_edges": r.LimitsEdges} {
		if n < 0 {
			details = append(details, decision.Detail{Field: field, Issue: "is negative", Expected: "0 or more"})
		}
	}
	return controlplane.Invalid(details)
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
		return fmt.Errorf("store the report of edge %q: %w", r.Edge, postgres.Unreachable(err))
	}
	return nil
}

// Reports takes POST ReportPath. The caller's listener decides who may.
func (s Store) Reports(a respond.Adapter) http.HandlerFunc {
	return a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		var report Report
		if err := respond.Decode(w, r, maxReport, &report); err != nil {
			return err
		}
		if err := report.check(); err != nil {
			return err
		}
		if err := s.Report(r.Context(), report); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}
