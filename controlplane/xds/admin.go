package xds

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/respond"
)

// AdminRoutes returns a function that mounts, relative to the router it is
// given, GET edges: what each edge that this replica serves holds and refuses.
func (s *Server) AdminRoutes(a respond.Adapter) func(chi.Router) {
	return func(r chi.Router) {
		r.Get("/edges", a.Handle(func(w http.ResponseWriter, _ *http.Request) error {
			respond.JSON(w, http.StatusOK, struct {
				Version int64        `json:"version"` // published by this replica
				Data    []EdgeStatus `json:"data"`
			}{s.Version(), s.Edges()})
			return nil
		}))
	}
}
