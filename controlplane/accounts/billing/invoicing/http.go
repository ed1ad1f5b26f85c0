package invoicing

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

// API serves what is not issued yet; package billing serves invoices.
type API struct {
	Store   Store
	Respond httpapi.Adapter
}

// Routes mounts the routes of a caller under r. need gives the middleware that requires a
// scope.
func (a API) Routes(r chi.Router, need func(scope string) func(http.Handler) http.Handler) {
	r.With(need("billing:read")).Get("/v1/billing/invoices/upcoming", httpapi.Handle(a.Respond, http.StatusOK, a.upcoming))
}

// upcoming answers GET /v1/billing/invoices/upcoming.
func (a API) upcoming(r *http.Request, _ httpapi.None) (billing.Bill, error) {
	return a.Store.Upcoming(r.Context(), identity.Account(r.Context()))
}
