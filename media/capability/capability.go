// Package capability serves those routes that take a binary body (contract 8.10) which
// ffmpeg can serve: they answer with the converted file.
package capability

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/body"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/files/mp4"
	"sluice.dev/sluice/media/files/probe"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/limits/fairshare"
)

// Bounds of one request, whose caller waits for the result. What takes longer is a
// video: POST /v1/vod, and its renditions.
const (
	MaxBody    = 256 << 20        // bytes in, and out
	maxLength  = 10 * time.Minute // of the film
	runTimeout = 3 * time.Minute
	maxWidth   = 3840 // of a still, in pixels
)

// Service is what can be done with bodies. Every field is required.
type Service struct {
	Probe      probe.Prober
	FFmpeg     ffmpeg.Tool     // its zero value: every surface answers 501
	Bodies     *fairshare.Pool // of the bodies that are here or on their way, by owner
	Converting *fairshare.Pool // of the conversions that run, by owner
	Plans      plans.Source
}

// Paths lists the surfaces.
func Paths() []string {
	return []string{"/v1/transcribe", "/v1/captions", "/v1/voice", "/v1/vision", "/v1/render", "/v1/transcode", "/v1/mux"}
}

// order is what a caller asks for: a recipe, and what must hold for the source.
type order struct {
	recipe ffmpeg.Recipe
	fits   func(mp4.Info) error
}

// Routes adds the surfaces to r, which must verify the caller's identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	for name, read := range conversions {
		r.Post("/v1/"+name, a.Handle(func(w http.ResponseWriter, r *http.Request) error { return v.serve(w, r, read) }))
	}
}

// transcode reads ?profile=.
func transcode(q url.Values) (order, error) {
	p, ok := ffmpeg.ProfileOf(q.Get("profile"))
	if !ok {
		var f form.Form
		f.FailAs(decision.Transcode002, "profile", "is missing, or no known profile", "one of "+strings.Join(ffmpeg.ProfileNames(), ", "))
		return order{}, f.Err()
	}
	return order{ffmpeg.Transcode(p), func(i mp4.Info) error {
		if i.Height < p.Height {
			return apierror.Errorf(decision.Transcode003, "The source is %d pixels high, too low for %s: pictures are not enlarged.", i.Height, p.Name)
		}
		return nil
	}}, nil
}

// mux reads ?format=, mp4 unless told.
func mux(q url.Values) (order, error) {
	var f form.Form
	format := q.Get("format")
	if format == "" {
		format = "mp4"
	}
	f.OneOf("format", format, ffmpeg.Containers)
	return order{ffmpeg.Mux(format), func(mp4.Info) error { return nil }}, f.Err()
}

// render reads ?time= in seconds, ?width= and ?format=.
func render(q url.Values) (order, error) {
	var f form.Form
	at, format := 0.0, q.Get("format")
	var err error
	if text := q.Get("time"); text != "" {
		if at, err = strconv.ParseFloat(text, 64); err != nil || !(at >= 0 && at < maxLength.Seconds()) {
			f.Fail("time", "is out of range", "seconds from the start of the film")
			at = 0
		}
	}
	width := f.Number(q, "width", 0, 16, maxWidth)
	if format == "" {
		format = "jpg"
	}
	f.OneOf("format", format, ffmpeg.Images)
	return order{ffmpeg.Still(at, width, format), func(i mp4.Info) error {
		if i.Duration > 0 && at >= i.Duration.Seconds() {
			return apierror.Invalid([]decision.Detail{{Field: "time", Issue: "lies beyond the end", Expected: fmt.Sprintf("less than %.3f", i.Duration.Seconds())}})
		}
		return nil
	}}, f.Err()
}

// serve answers one surface. What can be refused is refused before the body is
// read: nobody uploads a film to learn that there is no engine. A slow body holds a
// place of its sender's share among the bodies, and no place among the conversions.
func (v Service) serve(w http.ResponseWriter, r *http.Request, read func(url.Values) (order, error)) error {
	o, err := owner.From(r.Context())
	if err != nil {
		return err
	}
	if !v.FFmpeg.Available() {
		return apierror.Errorf(decision.NotImplemented, "There is no ffmpeg here: videos are not converted.")
	}
	limit := body.Limit(v.Plans, o, MaxBody)
	asked, err := read(r.URL.Query())
	if err == nil {
		err = films.Accept(r, limit)
	}
	if err != nil {
		return err
	}
	folder, leave, err := body.Begin(v.Bodies, o.ID, v.FFmpeg)
	if err != nil {
		return err
	}
	defer leave()
	size, err := body.Receive(w, r, folder, limit)
	if err == nil {
		err = v.fits(r.Context(), o, folder.Input(), size, asked)
	}
	if err != nil {
		return err
	}
	done, err := ffmpeg.Enter(r.Context(), v.Converting, o.ID)
	if err != nil {
		return err
	}
	err = v.FFmpeg.Run(r.Context(), folder, asked.recipe, limit, runTimeout)
	done()
	if err != nil {
		return err
	}
	return answer(w, r, folder.Output(), asked.recipe)
}

// films are what is taken.
var films = body.Kind{Types: []string{"video/"}, Bytes: "the bytes of a film"}

// fits looks into a film.
func (v Service) fits(ctx context.Context, o owner.Owner, name string, size int64, asked order) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open body: %w", err)
	}
	defer f.Close()
	info, err := v.Probe.Look(ctx, o.ID, f, size)
	if _, ours := errors.AsType[*apierror.Error](err); ours || ctx.Err() != nil {
		return err
	}
	if err != nil {
		return &apierror.Error{Code: decision.Storage002, Message: "The file is not accepted: an MP4 or QuickTime file is expected.", Cause: err}
	}
	switch {
	case info.Height == 0:
		return apierror.Errorf(decision.Storage002, "The file has no picture.")
	case info.Duration > maxLength:
		return apierror.Errorf(decision.Storage001, "The film is longer than %d minutes; POST /v1/vod takes it.", int(maxLength.Minutes()))
	}
	return asked.fits(info)
}

// answer sends the result.
func answer(w http.ResponseWriter, r *http.Request, name string, recipe ffmpeg.Recipe) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open result: %w", err)
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", recipe.Type)
	h.Set("Content-Disposition", `attachment; filename="result.`+recipe.Suffix+`"`)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, f)
	return nil
}
