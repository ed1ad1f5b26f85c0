package playback

import (
	"errors"
	"io"
	"net/http"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/captions/onair"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/playback/dash"
	"sluice.dev/sluice/platform/apierror"
)

// captionList answers with the playlist of the captions of a stream on air: those of a
// language that is not captioned any more stay empty, so that players who know it go on.
func (v Service) captionList(w http.ResponseWriter, r *http.Request, s streams.Stream, language string) error {
	t, err := v.Manifests.Timeline(r.Context(), s.PlaybackID, v.Now(), v.source(s))
	if errors.Is(err, dash.ErrNotFound) {
		return apierror.Errorf(decision.NotFound, "The stream is not on air.")
	}
	if apierror.Code(err) == decision.Internal {
		return &apierror.Error{Code: decision.BadGateway, Cause: err}
	}
	if err != nil {
		return err
	}
	signed, err := Sign(onair.Playlist(t, language), r.URL.Query().Get("token"))
	if err != nil {
		return &apierror.Error{Code: decision.BadGateway, Cause: err}
	}
	return captioned(w, "application/vnd.apple.mpegurl", "no-cache", string(signed))
}

// captionPiece answers with the captions of one segment.
func (v Service) captionPiece(w http.ResponseWriter, r *http.Request, s streams.Stream, p onair.Piece) error {
	text, err := v.OnAir.Piece(r.Context(), s.ID, p)
	if err != nil {
		return err
	}
	return captioned(w, "text/vtt; charset=utf-8", "private, max-age=60", text)
}

// captioned answers.
func captioned(w http.ResponseWriter, kind, cache, text string) error {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", cache)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Access-Control-Allow-Origin", "*") // players on any page; the token is the protection
	_, err := io.WriteString(w, text)
	return ignoreGone(err)
}
