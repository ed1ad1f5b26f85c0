package billing

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
)

// API serves billing.
type API struct {
	Store   Store
	Respond httpapi.Adapter
}

// Routes mounts the routes of a caller under r. need gives the middleware that
// requires a scope.
func (a API) Routes(r chi.Router, need func(scope string) func(http.Handler) http.Handler) {
	r.Group(func(r chi.Router) {
		r.Use(need("billing:read"))
		r.Get("/v1/billing/usage", httpapi.Handle(a.Respond, http.StatusOK, a.usage))
		r.Get("/v1/billing/invoices", httpapi.Handle(a.Respond, http.StatusOK, a.invoices))
		r.Get("/v1/billing/invoices/{id}", httpapi.Handle(a.Respond, http.StatusOK, a.invoice))
		r.Get("/v1/billing/subscription", httpapi.Handle(a.Respond, http.StatusOK, a.subscription))
	})
	r.Group(func(r chi.Router) {
		r.Use(need("billing:write"))
		r.Patch("/v1/billing/subscription", httpapi.Handle(a.Respond, http.StatusOK, a.subscribe))
	})
}

// AdminRoutes mounts the routes of operators relative to r, which checks who
// calls.
func (a API) AdminRoutes(r chi.Router) {
	r.Post("/accounts/{account}/invoices", httpapi.Handle(a.Respond, http.StatusOK, a.importInvoices))
	r.Get("/accounts/{account}/invoices", httpapi.Handle(a.Respond, http.StatusOK, a.adminInvoices))
	r.Patch("/invoices/{id}", httpapi.Handle(a.Respond, http.StatusOK, a.setStatus))
	r.Get("/plans", httpapi.Handle(a.Respond, http.StatusOK, a.plans))
	r.Patch("/plans/{name}", httpapi.Handle(a.Respond, http.StatusOK, a.setSelfServe))
}

// usage answers GET /v1/billing/usage: a report of the period, or, with a
// granularity or group_by, requests as a series.
func (a API) usage(r *http.Request, _ httpapi.None) (any, error) {
	if q := r.URL.Query(); q.Has("granularity") || q.Has("group_by") {
		return a.series(r, q)
	}
	p, err := ParsePeriod(r.URL.Query(), a.Store.now())
	if err != nil {
		return nil, err
	}
	return a.Store.Usage(r.Context(), identity.Account(r.Context()), p)
}

// invoices answers GET /v1/billing/invoices.
func (a API) invoices(r *http.Request, _ httpapi.None) (paging.List[Invoice], error) {
	return a.invoicesOf(r, identity.Account(r.Context()))
}

// invoice answers GET /v1/billing/invoices/{id}.
func (a API) invoice(r *http.Request, _ httpapi.None) (Bill, error) {
	return a.Store.Bill(r.Context(), identity.Account(r.Context()), chi.URLParam(r, "id"))
}

// adminInvoices answers GET accounts/{account}/invoices.
func (a API) adminInvoices(r *http.Request, _ httpapi.None) (paging.List[Invoice], error) {
	return a.invoicesOf(r, chi.URLParam(r, "account"))
}

// invoicesOf lists the invoices of one account, by status if the query names one.
func (a API) invoicesOf(r *http.Request, account string) (out paging.List[Invoice], err error) {
	p, details := List.Parse(r.URL.Query())
	status := r.URL.Query().Get("status")
	if status != "" && !knownStatus(status) {
		details = append(details, decision.Detail{Field: "status", Issue: "is not valid", Expected: "open, paid or void"})
	}
	if err := apierror.Invalid(details); err != nil {
		return out, err
	}
	return a.Store.Page(r.Context(), account, status, p)
}

// subscription answers GET /v1/billing/subscription.
func (a API) subscription(r *http.Request, _ httpapi.None) (Subscription, error) {
	return a.Store.Subscription(r.Context(), identity.Account(r.Context()))
}

type subscribeRequest struct {
	Plan string `json:"plan"`
}

// subscribe answers PATCH /v1/billing/subscription: plan.
func (a API) subscribe(r *http.Request, in subscribeRequest) (Subscription, error) {
	return a.Store.Subscribe(r.Context(), identity.Account(r.Context()), in.Plan)
}

type importRequest struct {
	Invoices []Invoice `json:"invoices"`
}

type imported struct {
	Imported int `json:"imported"`
}

// importInvoices answers POST accounts/{account}/invoices. It may be sent again:
// a number that is there is replaced.
func (a API) importInvoices(r *http.Request, in importRequest) (imported, error) {
	return imported{len(in.Invoices)}, a.Store.Import(r.Context(), chi.URLParam(r, "account"), in.Invoices)
}

type statusRequest struct {
	Status string `json:"status"`
}

// setStatus answers PATCH invoices/{id}: status.
func (a API) setStatus(r *http.Request, in statusRequest) (Invoice, error) {
	return a.Store.SetStatus(r.Context(), chi.URLParam(r, "id"), in.Status)
}

type planList struct {
	Data []Plan `json:"data"`
}

// plans answers GET plans.
func (a API) plans(r *http.Request, _ httpapi.None) (planList, error) {
	list, err := a.Store.Plans(r.Context())
	return planList{list}, err
}

type selfServeRequest struct {
	SelfServe *bool `json:"self_serve"`
}

// setSelfServe answers PATCH plans/{name}: self_serve.
func (a API) setSelfServe(r *http.Request, in selfServeRequest) (Plan, error) {
	if in.SelfServe == nil {
		return Plan{}, apierror.Invalid([]decision.Detail{{Field: "self_serve", Issue: "is required", Expected: "boolean"}})
	}
	p := Plan{chi.URLParam(r, "name"), *in.SelfServe}
	return p, a.Store.SetSelfServe(r.Context(), p)
}
