package streams

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// bodyLimit bounds the bodies of this package, in bytes: 50 labels of the
// greatest size, and room.
const bodyLimit = 64 << 10

// Routes adds the routes of /v1/streams to r, which must verify the caller's
// identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	r.Post("/v1/streams", a.Handle(v.create))
	r.Get("/v1/streams", a.Handle(v.list))
	r.Get("/v1/streams/{id}", a.Handle(v.get))
	r.Patch("/v1/streams/{id}", a.Handle(v.patch))
	r.Delete("/v1/streams/{id}", a.Handle(v.delete))
	r.Post("/v1/streams/{id}/key", a.Handle(v.rotate))
	r.Post("/v1/streams/{id}/actions", a.Handle(v.act))
	// The same for the platform's own services, such as schedules.
	r.Post("/internal/v1/streams/{id}/actions", a.Handle(v.act))
}

// create answers POST /v1/streams.
func (v Service) create(w http.ResponseWriter, r *http.Request) error {
	o, in, err := owner.Body[Input](w, r, bodyLimit)
	if err != nil {
		return err
	}
	s, key, err := v.Create(r.Context(), o, in)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/streams/"+s.ID)
	return v.answer(w, http.StatusCreated, s, key)
}

// list answers GET /v1/streams.
func (v Service) list(w http.ResponseWriter, r *http.Request) error {
	o, err := owner.From(r.Context())
	if err != nil {
		return err
	}
	var f form.Form
	filter := ParseFilter(&f, r.URL.Query())
	if err := f.Err(); err != nil {
		return err
	}
	found, err := v.List(r.Context(), o, filter)
	return httpapi.Result(w, http.StatusOK, found, err)
}

// get answers GET /v1/streams/{id}.
func (v Service) get(w http.ResponseWriter, r *http.Request) error {
	o, id, err := Target(r)
	if err != nil {
		return err
	}
	s, err := v.Get(r.Context(), o, id)
	if err != nil {
		return err
	}
	return v.answer(w, http.StatusOK, s, "")
}

// patch answers PATCH /v1/streams/{id}.
func (v Service) patch(w http.ResponseWriter, r *http.Request) error {
	o, id, err := Target(r)
	if err != nil {
		return err
	}
	var in Input
	if err := httpapi.Decode(w, r, bodyLimit, &in); err != nil {
		return err
	}
	s, err := v.Update(r.Context(), o, id, r.Header.Get("If-Match"), in)
	if err != nil {
		return err
	}
	return v.answer(w, http.StatusOK, s, "")
}

// delete answers DELETE /v1/streams/{id} with 204 and no body.
func (v Service) delete(w http.ResponseWriter, r *http.Request) error {
	o, id, err := Target(r)
	if err != nil {
		return err
	}
	if err := v.Delete(r.Context(), o, id, r.Header.Get("If-Match")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// rotate answers POST /v1/streams/{id}/key.
func (v Service) rotate(w http.ResponseWriter, r *http.Request) error {
	o, id, err := Target(r)
	if err != nil {
		return err
	}
	s, key, err := v.RotateKey(r.Context(), o, id)
	if err != nil {
		return err
	}
	return v.answer(w, http.StatusOK, s, key)
}

// act answers POST …/streams/{id}/actions.
func (v Service) act(w http.ResponseWriter, r *http.Request) error {
	o, id, err := Target(r)
	if err != nil {
		return err
	}
	var c Command
	if err := httpapi.Decode(w, r, bodyLimit, &c); err != nil {
		return err
	}
	out, err := v.Act(r.Context(), o, id, c)
	return httpapi.Result(w, http.StatusOK, out, err)
}

// answer shows a stream, with its ETag. key is empty but where it was made just
// now.
func (v Service) answer(w http.ResponseWriter, status int, s Stream, key string) error {
	w.Header().Set("ETag", ETag(s))
	httpapi.JSON(w, status, v.Endpoints.ViewOf(s, key))
	return nil
}

// Target returns the caller and the stream id in the path. An id that has not
// the form of one is not_found, without a query.
func Target(r *http.Request) (owner.Owner, string, error) {
	o, err := owner.From(r.Context())
	id := chi.URLParam(r, "id")
	if err == nil && !ident.Valid("strm", id) {
		err = &apierror.Error{Code: decision.NotFound}
	}
	return o, id, err
}
