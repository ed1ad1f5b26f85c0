package webhooks

import (
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

// bodyLimit bounds the bodies of these routes, in bytes, but for those that hold
// events.
const bodyLimit = 64 << 10

// small makes a body that embeds it httpapi.Limited.
type small struct{}

// BodyLimit is that of most bodies.
func (small) BodyLimit() int64 { return bodyLimit }

// Scopes of the routes (contract 7.14).
const (
	scopeRead  = "webhooks:read"
	scopeWrite = "webhooks:write"
)

// handlers serves a Service over HTTP.
type handlers struct{ *Service }

// Routes mounts /v1/webhooks; a middleware before it has put the caller into
// the context. The edge has checked the scope already; it is checked here again,
// so that no mistake in a route's policy opens the secrets' home.
func (s *Service) Routes(r chi.Router, a httpapi.Adapter) {
	h := handlers{s}
	mayRead, mayWrite := need(a, scopeRead), need(a, scopeWrite)
	read, write := r.With(mayRead), r.With(mayWrite)
	write.Post("/v1/webhooks", httpapi.Handle(a, http.StatusCreated, h.create))
	read.Get("/v1/webhooks", httpapi.Handle(a, http.StatusOK, h.list))
	read.Get("/v1/webhooks/event-types", httpapi.Handle(a, http.StatusOK, h.eventTypes))
	read.Get("/v1/webhooks/listen", httpapi.Handle(a, http.StatusOK, h.listen))
	write.Post("/v1/webhooks/trigger", httpapi.Handle(a, http.StatusCreated, h.trigger))
	write.Post("/v1/webhooks/test", httpapi.Handle(a, http.StatusOK, h.testURL))
	r.Route("/v1/webhooks/{id}", func(r chi.Router) {
		read, write := r.With(mayRead), r.With(mayWrite)
		read.Get("/", httpapi.Handle(a, http.StatusOK, h.get))
		write.Patch("/", httpapi.Handle(a, http.StatusOK, h.update))
		write.Delete("/", httpapi.Handle(a, http.StatusNoContent, h.delete))
		write.Post("/test", httpapi.Handle(a, http.StatusOK, h.test))
		write.Post("/verify", httpapi.Handle(a, http.StatusOK, h.verify))
		write.Post("/rotate-secret", httpapi.Handle(a, http.StatusOK, h.rotate))
		read.Get("/deliveries", httpapi.Handle(a, http.StatusOK, h.deliveries))
		read.Get("/deliveries/{delivery}", httpapi.Handle(a, http.StatusOK, h.delivery))
		write.Post("/deliveries/{delivery}/resend", httpapi.Handle(a, http.StatusAccepted, h.resend))
		write.Post("/recover", httpapi.Handle(a, http.StatusAccepted, h.recover))
		read.Get("/recoveries", httpapi.Handle(a, http.StatusOK, h.recoveries))
		read.Get("/recoveries/{recovery}", httpapi.Handle(a, http.StatusOK, h.recovery))
	})
}

// InternalRoutes mounts POST /internal/v1/events, by which products publish.
// The gateway never maps it; the caller's identity is that which it gave the
// product's request.
func (s *Service) InternalRoutes(r chi.Router, a httpapi.Adapter) {
	r.Post("/internal/v1/events", a.Handle(handlers{s}.publish))
}

// need refuses callers without an account or without scope.
func need(a httpapi.Adapter, scope string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return a.Handle(func(w http.ResponseWriter, r *http.Request) error {
			c, _ := identity.From(r.Context())
			if c.Account == "" {
				return &apierror.Error{Code: decision.AuthRequired}
			}
			if !scopes.Covers(c.Scopes, scope) {
				return &apierror.Error{Code: decision.ScopeMissing, Details: []decision.Detail{{Field: "scope", Issue: "is missing", Expected: scope}}}
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

// who is the account and the subscription that a request names.
func who(r *http.Request) (account, id string) {
	return identity.Account(r.Context()), chi.URLParam(r, "id")
}

// withSecret is a subscription that nothing on the way may keep.
type withSecret struct{ Subscription }

// SetHeaders forbids to keep it.
func (withSecret) SetHeaders(h http.Header) { h.Set("Cache-Control", "no-store") }

// creation and change are bodies of requests.
type (
	creation struct {
		small
		Create
	}
	change struct {
		small
		Update
	}
)

// create answers 201 with the subscription and, for the only time, its secret.
func (h handlers) create(r *http.Request, in creation) (withSecret, error) {
	s, err := h.Create(r.Context(), identity.Account(r.Context()), in.Create)
	return withSecret{s}, err
}

// statuses are what a list may be narrowed to; the empty one does not.
var statuses = []Status{"", Active, Paused, Disabled}

// list answers a page of the caller's subscriptions.
func (h handlers) list(r *http.Request, _ httpapi.None) (l paging.List[Subscription], err error) {
	q := r.URL.Query()
	p, details := Subscriptions.Parse(q)
	status := q.Get("status")
	if !slices.Contains(statuses, Status(status)) {
		details = append(details, decision.Detail{Field: "status", Issue: "is not known", Expected: "active, paused or disabled"})
	}
	if err := apierror.Invalid(details); err != nil {
		return l, err
	}
	return h.Page(r.Context(), identity.Account(r.Context()), status, p)
}

// get answers one subscription, without its secret.
func (h handlers) get(r *http.Request, _ httpapi.None) (Subscription, error) {
	account, id := who(r)
	return h.Get(r.Context(), account, id)
}

// update changes what the body names and answers the whole subscription.
func (h handlers) update(r *http.Request, in change) (Subscription, error) {
	account, id := who(r)
	return h.Update(r.Context(), account, id, in.Update)
}

// delete answers 204, and 404 when it is asked again.
func (h handlers) delete(r *http.Request, _ httpapi.None) (httpapi.None, error) {
	account, id := who(r)
	return httpapi.None{}, h.Delete(r.Context(), account, id)
}

// data is an answer that is a whole list.
type data[T any] struct {
	Data []T `json:"data"`
}

// eventTypes answers the events that happen here; they are the same for everyone.
func (h handlers) eventTypes(*http.Request, httpapi.None) (data[catalogue.Type], error) {
	return data[catalogue.Type]{h.Types()}, nil
}
