package methods

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts/billing/provider"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
)

// API serves payment methods.
type API struct {
	Store   Store
	Respond httpapi.Adapter
}

// Path is where they are served.
const Path = "/v1/billing/payment-methods"

// Routes mounts the routes of a caller under r. need gives the middleware that requires a
// scope.
func (a API) Routes(r chi.Router, need func(scope string) func(http.Handler) http.Handler) {
	r.Group(func(r chi.Router) {
		r.Use(need("billing:read"))
		r.Get(Path, httpapi.Handle(a.Respond, http.StatusOK, a.list))
		r.Get(Path+"/{id}", httpapi.Handle(a.Respond, http.StatusOK, a.get))
	})
	r.Group(func(r chi.Router) {
		r.Use(need("billing:write"))
		r.Post(Path, httpapi.Handle(a.Respond, http.StatusCreated, a.add))
		r.Post(Path+"/setup", httpapi.Handle(a.Respond, http.StatusCreated, a.setup))
		r.Patch(Path+"/{id}", httpapi.Handle(a.Respond, http.StatusOK, a.change))
		r.Delete(Path+"/{id}", httpapi.Handle(a.Respond, http.StatusNoContent, a.remove))
	})
}

// list answers GET payment-methods.
func (a API) list(r *http.Request, _ httpapi.None) (out paging.List[Method], err error) {
	p, details := a.Store.table().Parse(r.URL.Query())
	if err := apierror.Invalid(details); err != nil {
		return out, err
	}
	return a.Store.Page(r.Context(), identity.Account(r.Context()), p)
}

// get answers GET payment-methods/{id}.
func (a API) get(r *http.Request, _ httpapi.None) (Method, error) {
	return a.Store.Get(r.Context(), identity.Account(r.Context()), chi.URLParam(r, "id"))
}

type addRequest struct {
	Token   string `json:"token"`
	Default bool   `json:"default"`
}

// maxToken bounds a token, in bytes.
const maxToken = 200

// add answers POST payment-methods: token, default.
func (a API) add(r *http.Request, in addRequest) (Method, error) {
	if in.Token == "" || len(in.Token) > maxToken {
		return Method{}, apierror.Invalid([]decision.Detail{{Field: "token", Issue: "is missing, or too long",
			Expected: "a payment method's token that the provider has given to your client, such as pm_…"}})
	}
	return a.Store.Add(r.Context(), identity.Account(r.Context()), in.Token, in.Default)
}

// setup answers POST payment-methods/setup.
func (a API) setup(r *http.Request, _ httpapi.None) (out struct {
	Provider string `json:"provider"`
	provider.Setup
}, err error) {
	out.Provider = a.Store.Provider.Name()
	out.Setup, err = a.Store.Setup(r.Context(), identity.Account(r.Context()))
	return out, err
}

type changeRequest struct {
	Default *bool `json:"default"`
}

// change answers PATCH payment-methods/{id}: default, which can only be given.
func (a API) change(r *http.Request, in changeRequest) (Method, error) {
	if in.Default == nil || !*in.Default {
		return Method{}, apierror.Invalid([]decision.Detail{{Field: "default", Issue: "is missing, or false", Expected: "true; make another the default instead of taking it away"}})
	}
	return a.Store.SetDefault(r.Context(), identity.Account(r.Context()), chi.URLParam(r, "id"))
}

// remove answers DELETE payment-methods/{id}.
func (a API) remove(r *http.Request, _ httpapi.None) (httpapi.None, error) {
	return httpapi.None{}, a.Store.Remove(r.Context(), identity.Account(r.Context()), chi.URLParam(r, "id"))
}
