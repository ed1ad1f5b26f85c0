package assets

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/playback/signing"
	"sluice.dev/sluice/platform/apierror"
)

// Bounds of a still picture.
const (
	minStill     = 16   // pixels
	maxStill     = 3840 // pixels
	maxStillSize = 32 << 20
	stillTimeout = 20 * time.Second
)

// stillFile is the last part of a still's address.
const stillFile = "thumbnail.jpg"

// still answers GET /v1/playback/files/{id}/thumbnail.jpg: the picture at ?time=
// seconds, ?width= pixels wide. The token is that of the asset's file. It reads the
// seconds around the picture, and an owner's films take one conversion at a time.
func (v Service) still(w http.ResponseWriter, r *http.Request) error {
	a, err := v.Opened(r)
	if err != nil {
		return err
	}
	var f form.Form
	at := position(&f, r.URL.Query().Get("time"), seconds(a.DurationMS))
	if a.Kind == Clip && !a.Cut { // its place in a file that it shares
		at += seconds(a.StartMS)
	}
	width := 640
	if text := r.URL.Query().Get("width"); text != "" {
		width, _ = strconv.Atoi(text) // 0 is out of range
		f.Range("width", width, minStill, maxStill)
	}
	if err := f.Err(); err != nil {
		return err
	}
	if !v.FFmpeg.Available() {
		return noTranscoder()
	}
	leave, err := ffmpeg.Enter(r.Context(), v.Converting, a.Owner)
	if err != nil {
		return err
	}
	defer leave()
	return v.picture(r.Context(), a, at, min(width, a.Width), "jpg", func(out *os.File) error {
		h := w.Header()
		h.Set("Content-Type", "image/jpeg")
		h.Set("Cache-Control", "private, max-age=3600")
		h.Set("Access-Control-Allow-Origin", "*") // as for the film
		_, _ = io.Copy(w, out)                    // to a viewer who may have gone
		return nil
	})
}

// position reads a place in a film of this length, in seconds; 0: not known.
func position(f *form.Form, text string, length float64) float64 {
	if text == "" {
		return 0
	}
	at, err := strconv.ParseFloat(text, 64)
	if err != nil || !(at >= 0 && at <= maxPosition) || length > 0 && at >= length {
		f.Fail("time", "lies outside the film", "seconds from its start")
		return 0
	}
	return at
}

// Opened is the ready asset in r's path, if r's token opens it.
func (v Service) Opened(r *http.Request) (Asset, error) {
	id := chi.URLParam(r, "id")
	key, err := v.Keys.Key(r.Context())
	if err != nil {
		return Asset{}, err
	}
	if _, err := signing.Verify(key, r.URL.Query().Get("token"), signing.Download, id, v.Now()); err != nil {
		return Asset{}, err
	}
	a, err := v.playable(r.Context(), id)
	if err == nil && a.Status != Ready {
		err = &apierror.Error{Code: decision.NotFound}
	}
	return a, err
}
