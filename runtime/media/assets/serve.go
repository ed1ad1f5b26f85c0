package assets

import (
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/respond"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/runtime/media/files"
	"sluice.dev/sluice/runtime/media/signing"
	"sluice.dev/sluice/runtime/media/views"
)

// PublicRoutes adds the address that serves bytes. It asks for no identity: the
// token in the URL opens one asset.
func (v Service) PublicRoutes(r chi.Router, a respond.Adapter) {
	r.Get("/v1/playback/files/{id}", a.Handle(v.serve))
	r.Head("/v1/playback/files/{id}", a.Handle(v.serve))
}

// serve hands out the bytes of an asset to the bearer of its token. Clips get
// the whole file: the fragment in their address never reaches a server, and
// players go to the right place by themselves. A request from the first byte on
// counts as a view; the ranges that a player asks for afterwards do not.
func (v Service) serve(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	key, err := v.Keys.Key(r.Context())
	if err != nil {
		return err
	}
	if _, err := signing.Verify(key, r.URL.Query().Get("token"), signing.Download, id, v.Now()); err != nil {
		return err
	}
	a, err := one(r.Context(), v.DB, `id = $1`, id)
	if err == nil && a.Status != Ready {
		err = &controlplane.Error{Code: decision.NotFound}
	}
	if err != nil {
		return err
	}
	file, err := files.Open(r.Context(), v.DB, a.FileID)
	if err != nil {
		return err
	}
	if rng := r.Header.Get("Range"); r.Method == http.MethodGet && (rng == "" || strings.HasPrefix(rng, "bytes=0-")) {
		subject := views.Subject{Owner: a.Owner, ID: a.ID}
		if err := v.Views.Seen(r.Context(), subject, views.ViewerOf(r, "")); err != nil {
			return err
		}
	}
	h := w.Header()
	h.Set("Content-Type", contentType(a.Format))
	h.Set("ETag", `"`+a.FileID+`"`)
	h.Set("Cache-Control", "private, max-age=3600")
	h.Set("Access-Control-Allow-Origin", "*") // players on any page; the token is the protection
	if r.URL.Query().Get("download") != "" {
		h.Set("Content-Disposition", `attachment; filename="`+a.ID+"."+a.Format+`"`)
	}
	http.ServeContent(w, r, "", time.Time{}, file)
	return nil
}

// contentType is the media type of a format.
func contentType(format string) string {
	if format == "mov" {
		return "video/quicktime"
	}
	return "video/mp4"
}
