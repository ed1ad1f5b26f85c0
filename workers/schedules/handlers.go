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
		r.Get("/", a.Handle(h.events))
		r.Post("/schedules", a.Handle(h.create))
		r.Get("/schedules", a.Handle(h.list))
		r.Post("/schedules/preview", a.Handle(h.preview))
		r.Get("/schedules/{id}", a.Handle(h.get))
		r.Patch("/schedules/{id}", a.Handle(h.update))
		r.Delete("/schedules/{id}", a.Handle(h.delete))
		r.Post("/schedules/{id}/trigger", a.Handle(h.trigger))
		r.Get("/schedules/{id}/executions", a.Handle(h.executions))
	})
}

type handlers struct{ *Service }

// account returns whose schedules a request is about. An agent that pays per
// call has no account to keep any in.
func account(r *http.Request) (string, error) {
	id := identity.Account(r.Context())
	if id == "" {
		return "", apierror.Errorf(decision.AuthRequired, "Schedules belong to an account: use an API key.")
	}
	return id, nil
}

func (h handlers) create(w http.ResponseWriter, r *http.Request) error {
	owner, err := account(r)
	if err != nil {
		return err
	}
	var d definition.Definition
	if err := httpapi.Decode(w, r, bodyLimit, &d); err != nil {
		return err
	}
	made, err := h.Create(r.Context(), owner, d)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/events/schedules/"+made.ID)
	httpapi.JSON(w, http.StatusCreated, viewOf(made))
	return nil
}

func (h handlers) get(w http.ResponseWriter, r *http.Request) error {
	owner, err := account(r)
	if err != nil {
		return err
	}
	found, err := h.Get(r.Context(), owner, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusOK, viewOf(found))
	return nil
}

func (h handlers) update(w http.ResponseWriter, r *http.Request) error {
	owner, err := account(r)
	if err != nil {
		return err
	}
	raw, err := httpapi.ReadJSON(w, r, bodyLimit)
	if err != nil {
		return err
	}
	patch, err := definition.ParsePatch(raw)
	if err != nil {
		return err
	}
	updated, err := h.Update(r.Context(), owner, chi.URLParam(r, "id"), patch)
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusOK, viewOf(updated))
	return nil
}

func (h handlers) delete(w http.ResponseWriter, r *http.Request) error {
	owner, err := account(r)
	if err != nil {
		return err
	}
	if err := h.Delete(r.Context(), owner, chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// triggered is the answer to a trigger.
type triggered struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	ExecutionID string `json:"executionId"`
	Message     string `json:"message"`
}

func (h handlers) trigger(w http.ResponseWriter, r *http.Request) error {
	owner, err := account(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	execution, err := h.Trigger(r.Context(), owner, id)
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusAccepted, triggered{id, Executing, execution, "Schedule execution triggered"})
	return nil
}
