package assets

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/limits/inflight"
)

// bodyLimit bounds the JSON bodies of this package, in bytes.
const bodyLimit = 64 << 10

// BodyLimit bounds the body.
func (Input) BodyLimit() int64 { return bodyLimit }

// BodyLimit bounds the body.
func (ClipInput) BodyLimit() int64 { return bodyLimit }

// BodyLimit bounds the body.
func (RenditionInput) BodyLimit() int64 { return bodyLimit }

// UploadPath takes the bytes of a video.
const UploadPath = "/v1/vod/upload"

// Routes adds the routes of vod, recordings and clips to r, which must verify
// the caller's identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	r.Post("/v1/vod", owner.Handle(a, http.StatusCreated, v.createVOD))
	r.Post(UploadPath, owner.Handle(a, http.StatusCreated, v.upload))
	r.Post("/v1/clips", owner.Handle(a, http.StatusCreated, v.createClip))
	for path, kind := range map[string]Kind{"/v1/vod": VOD, "/v1/recordings": Recording, "/v1/clips": Clip} {
		s, target, one := surface{v, kind}, owner.InPath(kind.Prefix()), path+"/{id}"
		r.Get(path, owner.Handle(a, http.StatusOK, s.list))
		r.Get(one, owner.HandleFor(a, http.StatusOK, s.asset, v.get))
		r.Delete(one, owner.HandleFor(a, http.StatusNoContent, target, s.delete))
		r.Get(one+"/downloads", owner.HandleFor(a, http.StatusOK, s.asset, v.downloads))
		if kind == Recording {
			r.Post(one+"/retry", owner.HandleFor(a, http.StatusAccepted, target, v.retry))
		}
		if kind != Clip { // which shares the file of its source
			r.Post(one+"/renditions", owner.HandleFor(a, http.StatusAccepted, target, s.addRendition))
			r.Get(one+"/renditions", owner.HandleFor(a, http.StatusOK, s.asset, v.listRenditions))
		}
	}
}

// createVOD answers POST /v1/vod.
func (v Service) createVOD(o owner.Owner, r *http.Request, in Input) (View, error) {
	a, err := v.CreateVOD(r.Context(), o, in)
	return v.show(r, a, err)
}

// createClip answers POST /v1/clips.
func (v Service) createClip(o owner.Owner, r *http.Request, in ClipInput) (View, error) {
	a, err := v.CreateClip(r.Context(), o, in)
	if err != nil || o.Account != "" {
		return v.show(r, a, err)
	}
	return v.withStatus(r, a, now(v.Now).Add(statusTTL))
}

// upload takes the bytes of a video as the body; the title comes in the query.
func (v Service) upload(o owner.Owner, r *http.Request, _ httpapi.None) (View, error) {
	var f form.Form
	name := r.URL.Query().Get("title")
	if name != "" {
		f.Text("title", name, MaxTitle)
	}
	if err := f.Err(); err != nil {
		return View{}, err
	}
	inflight.Stream(r, 2*files.ChunkSize) // one chunk, and its way to the database
	a, err := v.Upload(r.Context(), o, name, r.Body, r.ContentLength)
	return v.show(r, a, err)
}

// show answers with an asset, or hands the error on.
func (v Service) show(r *http.Request, a Asset, err error) (View, error) {
	if err != nil {
		return View{}, err
	}
	key, err := v.Keys.Key(r.Context())
	if err != nil {
		return View{}, err
	}
	return v.view(a, key), nil
}

// surface is the part of the API that all kinds share.
type surface struct {
	Service
	kind Kind
}

// asset is the caller's asset in the path.
func (s surface) asset(r *http.Request) (Asset, error) {
	t, err := owner.InPath(s.kind.Prefix())(r)
	if err != nil {
		return Asset{}, err
	}
	return s.Get(r.Context(), t.Owner, s.kind, t.ID)
}

// list answers GET on a collection.
func (s surface) list(o owner.Owner, r *http.Request, _ httpapi.None) (paging.List[View], error) {
	var f form.Form
	filter := ParseFilter(&f, s.kind, r.URL.Query())
	if err := f.Err(); err != nil {
		return paging.List[View]{}, err
	}
	return s.List(r.Context(), o, filter)
}

// get answers GET on one asset. Its address is signed anew each time, so that
// it holds for the full six hours.
func (v Service) get(a Asset, r *http.Request, _ httpapi.None) (View, error) {
	return v.show(r, a, nil)
}

// delete answers DELETE.
func (s surface) delete(t owner.Target, r *http.Request, _ httpapi.None) (httpapi.None, error) {
	return httpapi.None{}, s.Delete(r.Context(), t.Owner, s.kind, t.ID)
}

// downloads lists the files of an asset: none before it is ready.
func (v Service) downloads(a Asset, r *http.Request, _ httpapi.None) (map[string]any, error) {
	key, err := v.Keys.Key(r.Context())
	if err != nil {
		return nil, err
	}
	found := []DownloadView{}
	if a.Status == Ready {
		found = append(found, DownloadView{Profile: "source", Format: a.Format, Resolution: some(a.Resolution()), FileSize: a.FileSize,
			URL: v.link(a, key, linkTTL), ExpiresAt: now(v.Now).Add(linkTTL)})
	}
	made, err := renditions(r.Context(), v.DB, `asset_id = $1 AND status = 'ready' ORDER BY height DESC`, a.ID)
	for _, m := range made {
		found = append(found, DownloadView{Profile: m.Profile, Format: "mp4", Resolution: some(m.Resolution()), FileSize: m.FileSize,
			URL: v.address(m.ID, key, linkTTL), ExpiresAt: now(v.Now).Add(linkTTL)})
	}
	return map[string]any{"id": a.ID, "status": a.Status, "data": found}, err
}

// RenditionInput is the body of POST …/renditions.
type RenditionInput struct {
	Profile string `json:"profile"`
}

// addRendition answers POST …/renditions: 202, because a job makes it.
func (s surface) addRendition(t owner.Target, r *http.Request, in RenditionInput) (RenditionView, error) {
	made, err := s.Render(r.Context(), t.Owner, s.kind, t.ID, in.Profile)
	return s.viewRendition(made, nil), err
}

// listRenditions answers GET …/renditions.
func (v Service) listRenditions(a Asset, r *http.Request, _ httpapi.None) (map[string][]RenditionView, error) {
	found, err := renditions(r.Context(), v.DB, `asset_id = $1 ORDER BY created_at, id`, a.ID)
	if err != nil {
		return nil, err
	}
	key, err := v.Keys.Key(r.Context())
	out := []RenditionView{}
	for _, m := range found {
		out = append(out, v.viewRendition(m, key))
	}
	return map[string][]RenditionView{"data": out}, err
}
