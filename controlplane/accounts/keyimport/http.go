package keyimport

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/platform/http/httpapi"
)

// API serves imports to operators.
type API struct {
	Service Service
	Respond httpapi.Adapter
}

// AdminRoutes mounts the route relative to r, which checks who calls.
func (a API) AdminRoutes(r chi.Router) {
	r.Post("/keys/import", httpapi.Handle(a.Respond, http.StatusOK, a.imports))
}

// imports answers POST keys/import.
func (a API) imports(r *http.Request, in Request) (Report, error) {
	return a.Service.Import(r.Context(), in)
}
