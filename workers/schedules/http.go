package schedules

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/workers/schedules/definition"
)

// bodyLimit bounds request bodies, in bytes: the largest payload and headers,
// and room.
const bodyLimit = 128 << 10

// Routes adds the routes of /v1/events, which must stand behind the identity
// middleware. Scopes are the edge's affair.
func (s *Service) Routes(r chi.Router, a httpapi.Adapter) {
	h := handlers{s}
	r.Route("/v1/events", func(r chi.Router) {
		r.Post("/schedules/preview", httpapi.Handle(a, http.StatusOK, h.preview))
		r = r.With(needAccount(a))
		r.Get("/", httpapi.Handle(a, http.StatusOK, h.events))
		r.Post("/schedules", httpapi.Handle(a, http.StatusCreated, h.create))
		r.Get("/schedules", httpapi.Handle(a, http.StatusOK, h.list))
		r.Get("/schedules/{id}", httpapi.Handle(a, http.StatusOK, h.get))
		r.Patch("/schedules/{id}", a.Handle(h.update))
		r.Delete("/schedules/{id}", httpapi.Handle(a, http.StatusNoContent, h.delete))
		r.Post("/schedules/{id}/trigger", httpapi.Handle(a, http.StatusAccepted, h.trigger))
		r.Get("/schedules/{id}/executions", httpapi.Handle(a, http.StatusOK, h.executions))
	})
}

type handlers struct{ *Service }

// needAccount refuses callers without an account: an agent that pays per call has
// none to keep schedules in.
func needAccount(a httpapi.Adapter) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return a.Handle(func(w http.ResponseWriter, r *http.Request) error {
			if identity.Account(r.Context()) == "" {
				return apierror.Errorf(decision.AuthRequired, "Schedules belong to an account: use an API key.")
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

// target is the account and the schedule that a request names.
func target(r *http.Request) (account, id string) {
	return identity.Account(r.Context()), chi.URLParam(r, "id")
}

// creation is the body of POST /v1/events/schedules.
type creation struct{ definition.Definition }

// BodyLimit makes a creation httpapi.Limited.
func (creation) BodyLimit() int64 { return bodyLimit }

// created is the answer to a creation.
type created struct{ view }

// SetHeaders says where the schedule is.
func (c created) SetHeaders(h http.Header) { h.Set("Location", "/v1/events/schedules/"+c.ID) }

func (h handlers) create(r *http.Request, in creation) (created, error) {
	s, err := h.Create(r.Context(), identity.Account(r.Context()), in.Definition)
	return created{viewOf(s)}, err
}

func (h handlers) get(r *http.Request, _ httpapi.None) (view, error) {
	account, id := target(r)
	found, err := h.Get(r.Context(), account, id)
	return viewOf(found), err
}

// update reads its body by itself, because a patch tells null from absent.
func (h handlers) update(w http.ResponseWriter, r *http.Request) error {
	raw, err := httpapi.ReadJSON(w, r, bodyLimit)
	if err != nil {
		return err
	}
	patch, err := definition.ParsePatch(raw)
	if err != nil {
		return httpapi.OfBody(err, raw)
	}
	account, id := target(r)
	updated, err := h.Update(r.Context(), account, id, patch)
	return httpapi.Result(w, http.StatusOK, viewOf(updated), err)
}

func (h handlers) delete(r *http.Request, _ httpapi.None) (httpapi.None, error) {
	account, id := target(r)
	return httpapi.None{}, h.Delete(r.Context(), account, id)
}

// triggered is the answer to a trigger.
type triggered struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	ExecutionID string `json:"executionId"`
	Message     string `json:"message"`
}

func (h handlers) trigger(r *http.Request, _ httpapi.None) (triggered, error) {
	account, id := target(r)
	execution, err := h.Trigger(r.Context(), account, id)
	return triggered{id, Executing, execution, "Schedule execution triggered"}, err
}
