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
// asks for a scope.
func (a API) Routes(r chi.Router, need func(scope string) func(http.Handler) http.Handler) {
	h := a.Respond.Handle
	r.Group(func(r chi.Router) {
		r.Use(need("billing:read"))
		r.Get("/v1/billing/usage", h(a.usage))
		r.Get("/v1/billing/invoices", h(a.invoices))
		r.Get("/v1/billing/subscription", h(a.subscription))
	})
	r.Group(func(r chi.Router) {
		r.Use(need("billing:write"))
		r.Patch("/v1/billing/subscription", h(a.subscribe))
	})
}

// AdminRoutes mounts the routes of operators relative to r, which checks who
// calls.
func (a API) AdminRoutes(r chi.Router) {
	h := a.Respond.Handle
	r.Post("/accounts/{account}/invoices", h(a.importInvoices))
	r.Get("/accounts/{account}/invoices", h(func(w http.ResponseWriter, r *http.Request) error {
		return a.invoicesOf(w, r, chi.URLParam(r, "account"))
	}))
	r.Patch("/invoices/{id}", h(a.setStatus))
	r.Get("/plans", h(a.plans))
	r.Patch("/plans/{name}", h(a.offer))
}

// usage answers GET /v1/billing/usage: a report of the period, or, with a
// granularity or group_by, requests as a series.
func (a API) usage(w http.ResponseWriter, r *http.Request) error {
	if q := r.URL.Query(); q.Has("granularity") || q.Has("group_by") {
		return a.series(w, r, q)
	}
	p, err := ParsePeriod(r.URL.Query(), a.Store.now())
	if err != nil {
		return err
	}
	u, err := a.Store.Usage(r.Context(), identity.Account(r.Context()), p)
	return httpapi.Result(w, http.StatusOK, u, err)
}

// invoices answers GET /v1/billing/invoices.
func (a API) invoices(w http.ResponseWriter, r *http.Request) error {
	return a.invoicesOf(w, r, identity.Account(r.Context()))
}

// invoicesOf lists the invoices of one account, by status if the query names one.
func (a API) invoicesOf(w http.ResponseWriter, r *http.Request, account string) error {
	p, details := paging.Parse(r.URL.Query())
	status := r.URL.Query().Get("status")
	if status != "" && !knownStatus(status) {
		details = append(details, decision.Detail{Field: "status", Issue: "is not valid", Expected: "open, paid or void"})
	}
	if err := apierror.Invalid(details); err != nil {
		return err
	}
	list, total, err := a.Store.List(r.Context(), account, status, p)
	return httpapi.Result(w, http.StatusOK, paging.Of(list, p, total), err)
}

// subscription answers GET /v1/billing/subscription.
func (a API) subscription(w http.ResponseWriter, r *http.Request) error {
	s, err := a.Store.Subscription(r.Context(), identity.Account(r.Context()))
	return httpapi.Result(w, http.StatusOK, s, err)
}

// subscribe answers PATCH /v1/billing/subscription: plan.
func (a API) subscribe(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Plan string `json:"plan"`
	}
	if err := httpapi.Decode(w, r, 0, &body); err != nil {
		return err
	}
	s, err := a.Store.Subscribe(r.Context(), identity.Account(r.Context()), body.Plan)
	return httpapi.Result(w, http.StatusOK, s, err)
}

// importInvoices answers POST accounts/{account}/invoices. It may be sent again:
// a number that is there is replaced.
func (a API) importInvoices(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Invoices []Invoice `json:"invoices"`
	}
	if err := httpapi.Decode(w, r, 0, &body); err != nil {
		return err
	}
	if err := a.Store.Import(r.Context(), chi.URLParam(r, "account"), body.Invoices); err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusOK, struct {
		Imported int `json:"imported"`
	}{len(body.Invoices)})
	return nil
}

// setStatus answers PATCH invoices/{id}: status.
func (a API) setStatus(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Status string `json:"status"`
	}
	if err := httpapi.Decode(w, r, 0, &body); err != nil {
		return err
	}
	i, err := a.Store.SetStatus(r.Context(), chi.URLParam(r, "id"), body.Status)
	return httpapi.Result(w, http.StatusOK, i, err)
}

// plans answers GET plans.
func (a API) plans(w http.ResponseWriter, r *http.Request) error {
	list, err := a.Store.Plans(r.Context())
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusOK, struct {
		Data []Plan `json:"data"`
	}{list})
	return nil
}

// offer answers PATCH plans/{name}: self_serve.
func (a API) offer(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		SelfServe *bool `json:"self_serve"`
	}
	if err := httpapi.Decode(w, r, 0, &body); err != nil {
		return err
	}
	if body.SelfServe == nil {
		return apierror.Invalid([]decision.Detail{{Field: "self_serve", Issue: "is required", Expected: "boolean"}})
	}
	p := Plan{chi.URLParam(r, "name"), *body.SelfServe}
	if err := a.Store.Offer(r.Context(), p); err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusOK, p)
	return nil
}
