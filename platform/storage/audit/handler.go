package audit

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/storage/postgres"
)

// API serves the log to operators.
type API struct {
	DB      postgres.DB
	Respond httpapi.Adapter
}

// AdminRoutes mounts GET audit relative to r, which checks who calls.
func (a API) AdminRoutes(r chi.Router) {
	r.Get("/audit", a.Respond.Handle(a.list))
}

// maxFilter bounds the value of a filter, in bytes.
const maxFilter = 100

// list answers GET audit: newest first, filtered by what the query names.
func (a API) list(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	p, details := Table.Parse(q)
	f := Filter{Account: q.Get("account"), Actor: q.Get("actor"), Action: q.Get("action"), Target: q.Get("target")}
	for name, value := range map[string]string{"account": f.Account, "actor": f.Actor, "action": f.Action, "target": f.Target} {
		if len(value) > maxFilter {
			details = append(details, decision.Detail{Field: name, Issue: "is too long", Expected: "at most 100 bytes"})
		}
	}
	if err := apierror.Invalid(details); err != nil {
		return err
	}
	l, err := Read(r.Context(), a.DB, f, p)
	return httpapi.Result(w, http.StatusOK, l, err)
}
