package assets

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/limits/inflight"
)

// bodyLimit bounds the JSON bodies of this package, in bytes.
const bodyLimit = 64 << 10

// UploadPath takes the bytes of a video.
const UploadPath = "/v1/vod/upload"

// Routes adds the routes of vod, recordings and clips to r, which must verify
// the caller's identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	r.Post("/v1/vod", a.Handle(v.createVOD))
	r.Post(UploadPath, a.Handle(v.upload))
	r.Post("/v1/clips", a.Handle(v.createClip))
	for path, kind := range map[string]Kind{"/v1/vod": VOD, "/v1/recordings": Recording, "/v1/clips": Clip} {
		s := surface{v, kind}
		r.Get(path, a.Handle(s.list))
		r.Get(path+"/{id}", a.Handle(s.get))
		r.Delete(path+"/{id}", a.Handle(s.delete))
		r.Get(path+"/{id}/downloads", a.Handle(s.downloads))
		s.chapterRoutes(r, a, path+"/{id}/chapters")
		if kind != Clip { // which shares the file of its source
			r.Post(path+"/{id}/renditions", a.Handle(s.addRendition))
			r.Get(path+"/{id}/renditions", a.Handle(s.listRenditions))
		}
	}
}

// createVOD answers POST /v1/vod.
func (v Service) createVOD(w http.ResponseWriter, r *http.Request) error {
	o, in, err := owner.Body[Input](w, r, bodyLimit)
	if err != nil {
		return err
	}
	a, err := v.CreateVOD(r.Context(), o, in)
	return v.created(w, r, a, err)
}

// createClip answers POST /v1/clips.
func (v Service) createClip(w http.ResponseWriter, r *http.Request) error {
	o, in, err := owner.Body[ClipInput](w, r, bodyLimit)
	if err != nil {
		return err
	}
	a, err := v.CreateClip(r.Context(), o, in)
	if err != nil || o.Account != "" {
		return v.created(w, r, a, err)
	}
	return v.sold(w, r, a)
}

// upload takes the bytes of a video as the body; the title comes in the query.
func (v Service) upload(w http.ResponseWriter, r *http.Request) error {
	o, err := owner.From(r.Context())
	if err != nil {
		return err
	}
	var f form.Form
	name := r.URL.Query().Get("title")
	if name != "" {
		f.Text("title", name, MaxTitle)
	}
	if err := f.Err(); err != nil {
		return err
	}
	inflight.Stream(r, 2*files.ChunkSize) // one chunk, and its way to the database
	a, err := v.Upload(r.Context(), o, name, r.Body, r.ContentLength)
	return v.created(w, r, a, err)
}

// created answers 201 with the new asset, or hands the error on.
func (v Service) created(w http.ResponseWriter, r *http.Request, a Asset, err error) error {
	if err != nil {
		return err
	}
	key, err := v.Keys.Key(r.Context())
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusCreated, v.view(a, key))
	return nil
}

// surface is the part of the API that all kinds share.
type surface struct {
	Service
	kind Kind
}

// target returns the caller and the id in the path. An id of another kind, or
// of no form at all, is not_found without a query.
func (s surface) target(r *http.Request) (owner.Owner, string, error) {
	o, err := owner.From(r.Context())
	id := chi.URLParam(r, "id")
	if err == nil && !ident.Valid(s.kind.Prefix(), id) {
		err = &apierror.Error{Code: decision.NotFound}
	}
	return o, id, err
}

// targetBody is target, and the request's body as a T.
func targetBody[T any](s surface, w http.ResponseWriter, r *http.Request) (o owner.Owner, id string, in T, err error) {
	if o, id, err = s.target(r); err == nil {
		err = httpapi.Decode(w, r, bodyLimit, &in)
	}
	return o, id, in, err
}

// asset is the caller's asset in the path.
func (s surface) asset(r *http.Request) (Asset, error) {
	o, id, err := s.target(r)
	if err != nil {
		return Asset{}, err
	}
	return s.Get(r.Context(), o, s.kind, id)
}

// list answers GET on a collection.
func (s surface) list(w http.ResponseWriter, r *http.Request) error {
	o, err := owner.From(r.Context())
	if err != nil {
		return err
	}
	var f form.Form
	filter := ParseFilter(&f, s.kind, r.URL.Query())
	if err := f.Err(); err != nil {
		return err
	}
	found, err := s.List(r.Context(), o, filter)
	return httpapi.Result(w, http.StatusOK, found, err)
}

// get answers GET on one asset. Its address is signed anew each time, so that
// it holds for the full six hours.
func (s surface) get(w http.ResponseWriter, r *http.Request) error {
	a, err := s.asset(r)
	if err != nil {
		return err
	}
	key, err := s.Keys.Key(r.Context())
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusOK, s.view(a, key))
	return nil
}

// delete answers DELETE with 204 and no body.
func (s surface) delete(w http.ResponseWriter, r *http.Request) error {
	o, id, err := s.target(r)
	if err != nil {
		return err
	}
	if err := s.Delete(r.Context(), o, s.kind, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// downloads lists the files of an asset: none before it is ready.
func (s surface) downloads(w http.ResponseWriter, r *http.Request) error {
	a, err := s.asset(r)
	if err != nil {
		return err
	}
	key, err := s.Keys.Key(r.Context())
	if err != nil {
		return err
	}
	found := []DownloadView{}
	if a.Status == Ready {
		found = append(found, DownloadView{Profile: "source", Format: a.Format, Resolution: some(a.Resolution()), FileSize: a.FileSize,
			URL: s.link(a, key, linkTTL), ExpiresAt: now(s.Now).Add(linkTTL)})
	}
	made, err := renditions(r.Context(), s.DB, `asset_id = $1 AND status = 'ready' ORDER BY height DESC`, a.ID)
	if err != nil {
		return err
	}
	for _, m := range made {
		found = append(found, DownloadView{Profile: m.Profile, Format: "mp4", Resolution: some(m.Resolution()), FileSize: m.FileSize,
			URL: s.address(m.ID, key, linkTTL), ExpiresAt: now(s.Now).Add(linkTTL)})
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"id": a.ID, "status": a.Status, "data": found})
	return nil
}

// RenditionInput is the body of POST …/renditions.
type RenditionInput struct {
	Profile string `json:"profile"`
}

// addRendition answers POST …/renditions: 202, because a job makes it.
func (s surface) addRendition(w http.ResponseWriter, r *http.Request) error {
	o, id, in, err := targetBody[RenditionInput](s, w, r)
	if err != nil {
		return err
	}
	made, err := s.Render(r.Context(), o, s.kind, id, in.Profile)
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusAccepted, s.viewRendition(made, nil))
	return nil
}

// listRenditions answers GET …/renditions.
func (s surface) listRenditions(w http.ResponseWriter, r *http.Request) error {
	a, err := s.asset(r)
	if err != nil {
		return err
	}
	found, err := renditions(r.Context(), s.DB, `asset_id = $1 ORDER BY created_at, id`, a.ID)
	if err != nil {
		return err
	}
	key, err := s.Keys.Key(r.Context())
	if err != nil {
		return err
	}
	out := []RenditionView{}
	for _, m := range found {
		out = append(out, s.viewRendition(m, key))
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"data": out})
	return nil
}
