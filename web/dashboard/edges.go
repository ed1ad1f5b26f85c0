package dashboard

import (
	"context"
	"net/http"
	"time"

	"sluice.dev/sluice/controlplane/gateway/edgestatus"
)

// edgesPage is the fleet at a moment.
type edgesPage struct {
	At    time.Time
	Fleet edgestatus.View
	Sum   *fleetSummary
}

// State is how an edge is, in a word.
func (edgesPage) State(e edgestatus.Edge) string {
	switch {
	case !e.Live:
		return "gone"
	case len(e.Refusals) > 0:
		return "refused"
	case e.Report != nil && e.Report.State == "cached":
		return "cached"
	case !e.Current:
		return "behind"
	}
	return "current"
}

// showEdges shows the fleet.
func (s *site) showEdges(w http.ResponseWriter, r *http.Request, v viewer) error {
	page, err := s.edges(r.Context(), look{viewer: v})
	if err != nil {
		return err
	}
	return s.show(w, r, v, "edges", "Edges", "/edges", page)
}

// edges reads the fleet.
func (s *site) edges(ctx context.Context, _ look) (any, error) {
	return s.recent.get(ctx, "edges", s.Now(), s.Every/2, func(ctx context.Context) (any, error) {
		f, err := s.fleet.View(ctx)
		if err != nil {
			return nil, err
		}
		return edgesPage{s.Now(), f, summary(f)}, nil
	})
}
