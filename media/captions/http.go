package captions

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// bodyLimit bounds a body: content, which JSON may write at twice its size.
const bodyLimit = 2*MaxContent + 64<<10

// BodyLimit bounds the body.
func (Input) BodyLimit() int64 { return bodyLimit }

// Routes adds the routes of a stream's owner to r, which must verify the caller's
// identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	const tracks, track = "/v1/streams/{id}/captions", "/v1/streams/{id}/captions/{lang}"
	r.Post(tracks, owner.HandleFor(a, http.StatusCreated, v.Streams.FromPath, v.create))
	r.Get(tracks, owner.HandleFor(a, http.StatusOK, v.Streams.FromPath, v.all))
	r.Put(track, owner.HandleFor(a, http.StatusOK, v.Streams.FromPath, v.replace))
	r.Delete(track, owner.HandleFor(a, http.StatusNoContent, v.Streams.FromPath, v.delete))
}

// PublicRoutes adds the route of viewers.
func (v Service) PublicRoutes(r chi.Router, a httpapi.Adapter) {
	r.Get("/v1/playback/{playback}/captions/{file}", a.Handle(v.serve))
}

// create answers POST: a track that is not there yet.
func (v Service) create(s streams.Stream, r *http.Request, in Input) (View, error) {
	return v.write(r, s, in, true)
}

// replace answers PUT: a track that is there, which the path names.
func (v Service) replace(s streams.Stream, r *http.Request, in Input) (View, error) {
	in.Language = chi.URLParam(r, "lang")
	return v.write(r, s, in, false)
}

// write creates or replaces a track.
func (v Service) write(r *http.Request, s streams.Stream, in Input, create bool) (View, error) {
	t, err := in.track()
	if err != nil {
		return View{}, err
	}
	switch held := false; {
	case in.Generate:
		if err = v.Speaks(r.Context(), t.Language); err == nil {
			t, err = v.Generate(r.Context(), s, t, create)
		}
	case !create && in.Content == "":
		if held, err = v.Hold(r.Context(), s, &t); err == nil && !held {
			t, err = v.Put(r.Context(), s, t, create)
		}
	default:
		t, err = v.Put(r.Context(), s, t, create)
	}
	if err != nil {
		return View{}, err
	}
	list, err := v.views(r.Context(), s, []Track{t})
	if err != nil {
		return View{}, err
	}
	return list[0], nil
}

// all answers GET with every track; there are too few for pages.
func (v Service) all(s streams.Stream, r *http.Request, _ httpapi.None) (map[string][]View, error) {
	tracks, err := v.list(r.Context(), s.ID)
	if err != nil {
		return nil, err
	}
	list, err := v.views(r.Context(), s, tracks)
	return map[string][]View{"data": list}, err
}

// views shows tracks, with how they come about.
func (v Service) views(ctx context.Context, s streams.Stream, tracks []Track) ([]View, error) {
	generated, err := v.OnAir.Views(ctx, s.ID)
	out := []View{}
	for _, t := range tracks {
		one := v.view(s, t)
		if g, ok := generated[t.Language]; ok {
			one.Generation = &g
		}
		out = append(out, one)
	}
	return out, err
}

// delete answers DELETE. Languages are compared in lower case.
func (v Service) delete(s streams.Stream, r *http.Request, _ httpapi.None) (httpapi.None, error) {
	return httpapi.None{}, v.remove(r.Context(), s.ID, strings.ToLower(chi.URLParam(r, "lang")))
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
