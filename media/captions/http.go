package captions

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// bodyLimit bounds a body: content, which JSON may write at twice its size.
const bodyLimit = 2*MaxContent + 64<<10

// Routes adds the routes of a stream's owner to r, which must verify the caller's
// identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	r.Post("/v1/streams/{id}/captions", a.Handle(v.post))
	r.Get("/v1/streams/{id}/captions", a.Handle(v.all))
	r.Put("/v1/streams/{id}/captions/{lang}", a.Handle(v.put))
	r.Delete("/v1/streams/{id}/captions/{lang}", a.Handle(v.delete))
}

// PublicRoutes adds the route of viewers.
func (v Service) PublicRoutes(r chi.Router, a httpapi.Adapter) {
	r.Get("/v1/playback/{playback}/captions/{file}", a.Handle(v.serve))
}

// stream is the caller's stream in the path.
func (v Service) stream(r *http.Request) (streams.Stream, error) {
	o, id, err := streams.Target(r)
	if err != nil {
		return streams.Stream{}, err
	}
	return v.Streams.Get(r.Context(), o, id)
}

// post answers POST: a track that is not there yet.
func (v Service) post(w http.ResponseWriter, r *http.Request) error {
	return v.write(w, r, http.StatusCreated)
}

// put answers PUT: a track that is there.
func (v Service) put(w http.ResponseWriter, r *http.Request) error {
	return v.write(w, r, http.StatusOK)
}

// write creates a track, or replaces the one that the path names.
func (v Service) write(w http.ResponseWriter, r *http.Request, status int) error {
	s, err := v.stream(r)
	if err != nil {
		return err
	}
	var in Input
	if err := httpapi.Decode(w, r, bodyLimit, &in); err != nil {
		return err
	}
	create := status == http.StatusCreated
	if !create {
		in.Language = chi.URLParam(r, "lang")
	}
	t, err := in.track()
	if err != nil {
		return err
	}
	if t, err = v.Put(r.Context(), s, t, create); err != nil {
		return err
	}
	httpapi.JSON(w, status, v.view(s, t))
	return nil
}

// all answers GET with every track; there are too few for pages.
func (v Service) all(w http.ResponseWriter, r *http.Request) error {
	s, err := v.stream(r)
	if err != nil {
		return err
	}
	tracks, err := v.list(r.Context(), s.ID)
	if err != nil {
		return err
	}
	out := []View{}
	for _, t := range tracks {
		out = append(out, v.view(s, t))
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"data": out})
	return nil
}

// delete answers DELETE. Languages are compared in lower case.
func (v Service) delete(w http.ResponseWriter, r *http.Request) error {
	s, err := v.stream(r)
	if err != nil {
		return err
	}
	if err := v.remove(r.Context(), s.ID, strings.ToLower(chi.URLParam(r, "lang"))); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// serve hands a track to whoever may watch its stream.
func (v Service) serve(w http.ResponseWriter, r *http.Request) error {
	s, _, err := v.Watch(r)
	if err != nil {
		return err
	}
	language, ok := strings.CutSuffix(chi.URLParam(r, "file"), ".vtt")
	if !ok || strings.ContainsRune(language, 0) {
		return &apierror.Error{Code: decision.NotFound}
	}
	text, err := v.content(r.Context(), s.ID, language)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/vtt; charset=utf-8")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	_, err = w.Write([]byte(text))
	return err
}
