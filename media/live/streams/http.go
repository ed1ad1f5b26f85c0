package streams

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/paging"
)

// bodyLimit bounds the bodies of this package, in bytes: 50 labels of the
// greatest size, and room.
const bodyLimit = 64 << 10

// BodyLimit bounds the body.
func (Input) BodyLimit() int64 { return bodyLimit }

// BodyLimit bounds the body.
func (Command) BodyLimit() int64 { return bodyLimit }

// target reads which stream the path names.
var target = owner.InPath("strm")

// Routes adds the routes of /v1/streams to r, which must verify the caller's
// identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	r.Post("/v1/streams", owner.Handle(a, http.StatusCreated, v.create))
	r.Get("/v1/streams", owner.Handle(a, http.StatusOK, v.list))
	r.Get("/v1/streams/{id}", owner.HandleFor(a, http.StatusOK, v.FromPath, v.get))
	r.Patch("/v1/streams/{id}", owner.HandleFor(a, http.StatusOK, target, v.patch))
	r.Delete("/v1/streams/{id}", owner.HandleFor(a, http.StatusNoContent, target, v.delete))
	r.Post("/v1/streams/{id}/key", owner.HandleFor(a, http.StatusOK, target, v.rotate))
	act := owner.HandleFor(a, http.StatusOK, target, v.act)
	r.Post("/v1/streams/{id}/actions", act)
	r.Post("/internal/v1/streams/{id}/actions", act) // for the platform's own services, such as schedules
}

// answer is a stream, with its ETag.
type answer struct {
	View
	etag     string
	location string // of a stream that was created just now; else empty
}

// SetHeaders sets those of the answer.
func (a answer) SetHeaders(h http.Header) {
	h.Set("ETag", a.etag)
	if a.location != "" {
		h.Set("Location", a.location)
	}
}

// show answers with a stream, if there is no error. key is empty but where it was
// created just now.
func (v Service) show(s Stream, key string, err error) (answer, error) {
	return answer{View: v.Endpoints.ViewOf(s, key), etag: ETag(s)}, err
}

// create answers POST /v1/streams.
func (v Service) create(o owner.Owner, r *http.Request, in Input) (answer, error) {
	s, key, err := v.Create(r.Context(), o, in)
	out, err := v.show(s, key, err)
	out.location = "/v1/streams/" + s.ID
	return out, err
}

// list answers GET /v1/streams.
func (v Service) list(o owner.Owner, r *http.Request, _ httpapi.None) (paging.List[View], error) {
	var f form.Form
	filter := ParseFilter(&f, r.URL.Query())
	if err := f.Err(); err != nil {
		return paging.List[View]{}, err
	}
	return v.List(r.Context(), o, filter)
}

// get answers GET /v1/streams/{id}.
func (v Service) get(s Stream, _ *http.Request, _ httpapi.None) (answer, error) {
	return v.show(s, "", nil)
}

// patch answers PATCH /v1/streams/{id}.
func (v Service) patch(t owner.Target, r *http.Request, in Input) (answer, error) {
	s, err := v.Update(r.Context(), t.Owner, t.ID, r.Header.Get("If-Match"), in)
	return v.show(s, "", err)
}

// delete answers DELETE /v1/streams/{id}.
func (v Service) delete(t owner.Target, r *http.Request, _ httpapi.None) (httpapi.None, error) {
	return httpapi.None{}, v.Delete(r.Context(), t.Owner, t.ID, r.Header.Get("If-Match"))
}

// rotate answers POST /v1/streams/{id}/key.
func (v Service) rotate(t owner.Target, r *http.Request, _ httpapi.None) (answer, error) {
	s, key, err := v.RotateKey(r.Context(), t.Owner, t.ID)
	return v.show(s, key, err)
}

// act answers POST …/streams/{id}/actions.
func (v Service) act(t owner.Target, r *http.Request, c Command) (Outcome, error) {
	return v.Act(r.Context(), t.Owner, t.ID, c)
}

// FromPath returns the caller's stream that the path names.
func (v Service) FromPath(r *http.Request) (Stream, error) {
	t, err := target(r)
	if err != nil {
		return Stream{}, err
	}
	return v.Get(r.Context(), t.Owner, t.ID)
}
