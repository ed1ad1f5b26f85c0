package playback

import (
	"context"
	"errors"
	"io"
	"net/http"

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
	s, name, err := v.Watch(r)
	if err != nil {
		return err
	}
	if err := v.playing(s); err != nil {
		return err
	}
	text, err := v.Manifests.Manifest(r.Context(), s.PlaybackID, r.URL.Query().Get("token"), v.Now(), v.source(s))
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
		res, err := v.ask(ctx, s, name, nil, "")
		if err != nil {
			return nil, err
		}
		return res.Body, nil
	}
}
