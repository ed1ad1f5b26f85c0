package playback

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/playback/dash"
	"sluice.dev/sluice/media/playback/views"
	"sluice.dev/sluice/platform/apierror"
)

// dash answers GET /v1/playback/{playback}/index.mpd: the manifest of DASH over the
// segments that HLS has, at the same addresses and with the same token. A request
// counts its viewer as present, as one for a playlist does.
func (v Service) dash(w http.ResponseWriter, r *http.Request) error {
	return v.manifest(w, r, v.Manifests.Manifest)
}

// lowLatency answers GET /v1/playback/{playback}/low-latency.mpd: the same with the segments
// that are not complete yet.
func (v Service) lowLatency(w http.ResponseWriter, r *http.Request) error {
	return v.manifest(w, r, v.Manifests.LowLatency)
}

// manifest answers with what write makes.
func (v Service) manifest(w http.ResponseWriter, r *http.Request, write func(context.Context, string, string, time.Time, dash.Source) ([]byte, error)) error {
	s, name, err := v.Watch(r)
	if err != nil {
		return err
	}
	if err := v.playing(s); err != nil {
		return err
	}
	text, err := write(r.Context(), s.PlaybackID, r.URL.Query().Get("token"), v.Now(), v.source(s))
	if errors.Is(err, dash.ErrNotFound) {
		return apierror.Errorf(decision.NotFound, "The stream is not on air.")
	}
	if apierror.Code(err) == decision.Internal {
		return &apierror.Error{Code: decision.BadGateway, Cause: err}
	}
	if err != nil {
		return err
	}
	if err := v.Views.Seen(r.Context(), subject(s), views.ViewerOf(r, name)); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", dash.ContentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("Access-Control-Allow-Origin", "*") // players on any page; the token is the protection
	_, err = w.Write(text)
	return ignoreGone(err)
}

// source is where the manifest of s finds what it tells of.
func (v Service) source(s streams.Stream) dash.Source {
	return func(ctx context.Context, name string) (io.ReadCloser, error) {
		file, query, _ := strings.Cut(name, "?")
		res, err := v.ask(ctx, s, file, query, "")
		if err != nil {
			return nil, err
		}
		return res.Body, nil
	}
}

// grow hands out a segment part by part as the engine completes them. An answer that
// cannot be completed is broken off, so that nobody takes it for the whole.
func (v Service) grow(w http.ResponseWriter, r *http.Request, g *dash.Growth) error {
	flush := http.NewResponseController(w)
	for i := 0; ; i++ {
		part, err := g.Part(r.Context(), i)
		if errors.Is(err, io.EOF) && i > 0 {
			return nil
		}
		if err != nil && i > 0 {
			panic(http.ErrAbortHandler)
		}
		if err != nil {
			return apierror.Errorf(decision.NotFound, "The stream is not on air, or it is there no longer.")
		}
		if i == 0 {
			h := w.Header()
			h.Set("Content-Type", g.Mime)
			h.Set("Cache-Control", "max-age=60")
			h.Set("Access-Control-Allow-Origin", "*")
		}
		if _, err := w.Write(part); err != nil {
			return ignoreGone(err)
		}
		_ = flush.Flush() // a writer that cannot sends it with the next part
	}
}
