package edgestatus

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Routes mounts, relative to r, GET edges: the whole fleet, whichever replica answers.
func (s Store) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get("/edges", httpapi.Handle(a, http.StatusOK, func(r *http.Request, _ httpapi.None) (View, error) {
		return s.View(r.Context())
	}))
}

// maxReport bounds a report, in bytes.
const maxReport = 16 << 10

// BodyLimit is that bound.
func (Report) BodyLimit() int64 { return maxReport }

// Reports takes POST edgeapi.ReportPath. The caller's listener decides who may.
func (s Store) Reports(a httpapi.Adapter) http.HandlerFunc {
	return httpapi.Handle(a, http.StatusNoContent, func(r *http.Request, report Report) (none httpapi.None, err error) {
		if err := report.check(); err != nil {
			return none, err
		}
		return none, s.Report(r.Context(), report)
	})
}
