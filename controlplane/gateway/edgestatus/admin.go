package edgestatus

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/platform/http/httpapi"
)

// AdminRoutes returns a function that mounts, relative to the router it is
// given, GET edges: the whole fleet, whichever replica answers.
func (s Store) AdminRoutes(a httpapi.Adapter) func(chi.Router) {
	return func(r chi.Router) {
		r.Get("/edges", httpapi.Handle(a, http.StatusOK, func(r *http.Request, _ httpapi.None) (View, error) {
			return s.View(r.Context())
		}))
	}
}
