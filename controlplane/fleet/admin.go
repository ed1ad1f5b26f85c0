package fleet

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/respond"
)

// AdminRoutes returns a function that mounts, relative to the router it is
// given, GET edges: the whole fleet, whichever replica answers.
func (s Store) AdminRoutes(a respond.Adapter) func(chi.Router) {
	return func(r chi.Router) {
		r.Get("/edges", a.Handle(func(w http.ResponseWriter, r *http.Request) error {
			v, err := s.View(r.Context())
			if err != nil {
				return err
			}
			respond.JSON(w, http.StatusOK, v)
			return nil
		}))
	}
}
