package webhooks

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

// bodyLimit bounds the bodies of these routes, in bytes, but for events.
const bodyLimit = 64 << 10

// Scopes of the routes (contract 7.14).
const (
	scopeRead  = "webhooks:read"
	scopeWrite = "webhooks:write"
)

// handlers serves a Service over HTTP.
type handlers struct {
	*Service
	adapter httpapi.Adapter
}

// Routes mounts /v1/webhooks; a middleware before it has put the caller into
// the context. The edge has checked the scope already; it is checked here again,
// so that no mistake in a route's policy opens the secrets' home.
func Routes(s *Service, a httpapi.Adapter) func(chi.Router) {
	h := handlers{s, a}
	return func(r chi.Router) {
		r.Post("/v1/webhooks", h.with(scopeWrite, h.create))
		r.Get("/v1/webhooks", h.with(scopeRead, h.list))
		r.Get("/v1/webhooks/event-types", h.with(scopeRead, h.eventTypes))
		r.Post("/v1/webhooks/test", h.with(scopeWrite, h.testURL))
		r.Route("/v1/webhooks/{id}", func(r chi.Router) {
			r.Get("/", h.with(scopeRead, h.get))
			r.Patch("/", h.with(scopeWrite, h.update))
			r.Delete("/", h.with(scopeWrite, h.delete))
			r.Post("/test", h.with(scopeWrite, h.test))
			r.Post("/verify", h.with(scopeWrite, h.verify))
			r.Post("/rotate-secret", h.with(scopeWrite, h.rotate))
			r.Get("/deliveries", h.with(scopeRead, h.deliveries))
			r.Get("/deliveries/{delivery}", h.with(scopeRead, h.delivery))
			r.Post("/deliveries/{delivery}/resend", h.with(scopeWrite, h.resend))
			r.Post("/recover", h.with(scopeWrite, h.recover))
			r.Get("/recoveries", h.with(scopeRead, h.recoveries))
			r.Get("/recoveries/{recovery}", h.with(scopeRead, h.recovery))
		})
	}
}

// InternalRoutes mounts POST /internal/v1/events, by which products publish.
// The gateway never maps it; the caller's identity is that which it gave the
// product's request.
func InternalRoutes(s *Service, a httpapi.Adapter) func(chi.Router) {
	h := handlers{s, a}
	return func(r chi.Router) { r.Post("/internal/v1/events", a.Handle(h.publish)) }
}

// with serves f to callers that have an account and scope.
func (h handlers) with(scope string, f httpapi.HandlerFunc) http.HandlerFunc {
	return h.adapter.Handle(func(w http.ResponseWriter, r *http.Request) error {
		c, _ := identity.From(r.Context())
		if c.Account == "" {
			return &apierror.Error{Code: decision.AuthRequired}
		}
		if !scopes.Covers(c.Scopes, scope) {
			return &apierror.Error{Code: decision.ScopeMissing, Details: []decision.Detail{{Field: "scope", Issue: "is missing", Expected: scope}}}
		}
		return f(w, r)
	})
}

// who is the account and the subscription that a request names.
func who(r *http.Request) (account, id string) {
	return identity.Account(r.Context()), chi.URLParam(r, "id")
}

// answerSecret writes what nothing on the way may keep.
func answerSecret(w http.ResponseWriter, status int, s Subscription, err error) error {
	if err == nil {
		w.Header().Set("Cache-Control", "no-store")
	}
	return httpapi.Result(w, status, s, err)
}

// create answers 201 with the subscription and, for the only time, its secret.
func (h handlers) create(w http.ResponseWriter, r *http.Request) error {
	var in Create
	if err := httpapi.Decode(w, r, bodyLimit, &in); err != nil {
		return err
	}
	s, err := h.Create(r.Context(), identity.Account(r.Context()), in)
	return answerSecret(w, http.StatusCreated, s, err)
}

// list answers a page of the caller's subscriptions, newest first.
func (h handlers) list(w http.ResponseWriter, r *http.Request) error {
	p, details := paging.Parse(r.URL.Query())
	if err := apierror.Invalid(details); err != nil {
		return err
	}
	list, total, err := h.List(r.Context(), identity.Account(r.Context()), p.Limit, p.Offset)
	return httpapi.Result(w, http.StatusOK, paging.Of(list, p, total), err)
}

// get answers one subscription, without its secret.
func (h handlers) get(w http.ResponseWriter, r *http.Request) error {
	account, id := who(r)
	s, err := h.Get(r.Context(), account, id)
	return httpapi.Result(w, http.StatusOK, s, err)
}

// update changes what the body names and answers the whole subscription.
func (h handlers) update(w http.ResponseWriter, r *http.Request) error {
	var in Update
	if err := httpapi.Decode(w, r, bodyLimit, &in); err != nil {
		return err
	}
	account, id := who(r)
	s, err := h.Update(r.Context(), account, id, in)
	return httpapi.Result(w, http.StatusOK, s, err)
}

// delete answers 204, and 404 when it is asked again.
func (h handlers) delete(w http.ResponseWriter, r *http.Request) error {
	account, id := who(r)
	if err := h.Delete(r.Context(), account, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// eventTypes answers the catalogue; it is the same for everyone.
func (h handlers) eventTypes(w http.ResponseWriter, _ *http.Request) error {
	return httpapi.Result(w, http.StatusOK, map[string]any{"data": catalogue.All()}, nil)
}
