package transcribe

import (
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/body"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Paths are those that take a body of bytes, with the form of their answers unless
// another is asked for.
var Paths = map[string]string{"/v1/transcribe": "json", "/v1/captions": "vtt"}

// sounds are what is taken.
var sounds = body.Kind{Types: []string{"video/", "audio/", "application/ogg"}, Bytes: "the bytes of a recording or film"}

// validLanguage is a BCP 47 tag in lower case.
var validLanguage = regexp.MustCompile(`^[a-z]{2,3}(-[a-z0-9]{2,8}){0,4}$`)

// Routes adds the routes to r, which must verify the caller's identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	for path, usual := range Paths {
		r.Post(path, a.Handle(func(w http.ResponseWriter, r *http.Request) error { return v.post(w, r, usual) }))
	}
	for path, kind := range map[string]assets.Kind{"/v1/vod": assets.VOD, "/v1/recordings": assets.Recording, "/v1/clips": assets.Clip} {
		all, target := path+"/{id}/captions", owner.InPath(kind.Prefix())
		r.Post(all, owner.HandleFor(a, http.StatusAccepted, target, v.create))
		r.Get(all, owner.HandleFor(a, http.StatusOK, target, v.list))
		r.Get(all+"/{lang}", a.Handle(func(w http.ResponseWriter, r *http.Request) error { return v.get(w, r, target) }))
		r.Delete(all+"/{lang}", owner.HandleFor(a, http.StatusNoContent, target, v.delete))
	}
}

// PublicRoutes adds the route of players, which the token of the asset's file opens.
func (v Service) PublicRoutes(r chi.Router, a httpapi.Adapter) {
	r.Get("/v1/playback/files/{id}/captions/{file}", a.Handle(v.serve))
}

// query is what a caller asks for.
type query struct{ language, form, asset string }

// ask reads ?language=, ?format= and ?asset_id=. Without a format the Accept header
// decides, where it names one.
func ask(r *http.Request, usual string) (q query, err error) {
	var f form.Form
	values := r.URL.Query()
	q = query{strings.ToLower(values.Get("language")), formOf(values, r.Header.Get("Accept"), usual), values.Get("asset_id")}
	if q.language != "" && !validLanguage.MatchString(q.language) {
		f.Fail("language", "is not a language tag", "BCP 47, such as en or pt-BR")
	}
	if contentTypes[q.form] == "" {
		f.Fail("format", "is not a known form", "json, srt, vtt or text")
	}
	return q, f.Err()
}

// formOf is the form that a caller wants.
func formOf(values url.Values, accept, usual string) string {
	if values.Has("format") {
		return values.Get("format")
	}
	for part := range strings.SplitSeq(accept, ",") {
		kind, _, err := mime.ParseMediaType(part)
		switch {
		case err != nil:
		case kind == "application/json":
			return "json"
		case kind == "text/vtt":
			return "vtt"
		case kind == "application/x-subrip" || kind == "text/srt":
			return "srt"
		case kind == "text/plain":
			return "text"
		}
	}
	return usual
}

// post answers POST with a body, or for an asset. What can be refused is refused before
// the body is read. It takes time in proportion to the sound.
func (v Service) post(w http.ResponseWriter, r *http.Request, usual string) error {
	o, err := owner.From(r.Context())
	if err != nil {
		return err
	}
	if err := v.Available(r.Context()); err != nil {
		return err
	}
	q, err := ask(r, usual)
	if err != nil {
		return err
	}
	if q.asset != "" {
		return v.postAsset(w, r, o, q)
	}
	limit := body.Limit(v.Plans, o, v.Product.Setting(r.Context()).MaxBytes)
	if err := sounds.Accept(r, limit); err != nil {
		return err
	}
	folder, leave, err := body.Begin(v.Bodies, o.ID, v.FFmpeg)
	if err != nil {
		return err
	}
	defer leave()
	size, err := body.Receive(w, r, folder, limit)
	if err == nil && size == 0 {
		err = apierror.Errorf(decision.Storage002, "The body is empty; send the bytes of a recording or film, or name an asset by asset_id.")
	}
	if err != nil {
		return err
	}
	t, err := v.transcribe(r.Context(), o.ID, folder, q.language, maxWaiting, func(float64) {})
	if err != nil {
		return err
	}
	return write(w, t, q.form)
}

// postAsset answers with the transcript of an asset, or 202 with the state of the one
// that a job makes.
func (v Service) postAsset(w http.ResponseWriter, r *http.Request, o owner.Owner, q query) error {
	if !knownID(q.asset) {
		return &apierror.Error{Code: decision.NotFound}
	}
	made, err := v.generate(r.Context(), o, q.asset, q.language)
	if err != nil {
		return err
	}
	if made.Status == Ready {
		t, err := v.text(r.Context(), made)
		if err != nil {
			return err
		}
		return write(w, t, q.form)
	}
	view, err := v.view(r.Context(), made)
	if err == nil {
		httpapi.JSON(w, http.StatusAccepted, view)
	}
	return err
}

// knownID reports whether id may be that of an asset.
func knownID(id string) bool {
	for _, k := range []assets.Kind{assets.VOD, assets.Recording, assets.Clip} {
		if ident.Valid(k.Prefix(), id) {
			return true
		}
	}
	return false
}

func writeJSON(w http.ResponseWriter, v any) error {
	httpapi.JSON(w, http.StatusOK, v)
	return nil
}
