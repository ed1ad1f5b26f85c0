package assets

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/media/playback/views"
	"sluice.dev/sluice/platform/http/httpapi"
)

// PublicRoutes adds the addresses that serve bytes, and the state of clips that
// were paid for. They ask for no identity: the token in the URL opens one asset.
func (v Service) PublicRoutes(r chi.Router, a httpapi.Adapter) {
	r.Get("/v1/playback/files/{id}", a.Handle(v.serve))
	r.Get("/v1/playback/files/{id}/"+stillFile, a.Handle(v.still))
	r.Get("/v1/playback/files/{id}/index.mpd", a.Handle(v.manifest))
	r.Get("/v1/playback/files/{id}/{track}", a.Handle(v.track))
	r.Get("/v1/playback/clips/{id}", a.Handle(v.status))
}

// playable finds an asset, or a rendition as if it were its asset with another
// file.
func (v Service) playable(ctx context.Context, id string) (Asset, error) {
	if !ident.Valid("rend", id) {
		return one(ctx, v.DB, `id = $1`, id)
	}
	r, err := rendition(ctx, v.DB, id, "")
	if err != nil {
		return Asset{}, err
	}
	a, err := one(ctx, v.DB, `id = $1`, r.AssetID)
	a.Status, a.FileID, a.FileSize, a.Format, a.Width, a.Height = r.Status, r.FileID, r.FileSize, "mp4", r.Width, r.Height
	return a, err
}

// serve hands out the bytes of an asset to the bearer of its token. A request from the first byte on
// counts as a view; the ranges that a player asks for afterwards do not. A request
// for several ranges gets the whole: each byte that it skipped to would cost the
// database a chunk.
func (v Service) serve(w http.ResponseWriter, r *http.Request) error {
	a, err := v.Opened(r)
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
	if strings.Contains(r.Header.Get("Range"), ",") {
		r.Header.Del("Range") // as RFC 9110 (14.2) allows; see serve's contract
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
