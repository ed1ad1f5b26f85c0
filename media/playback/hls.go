package playback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/captions/onair"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/playback/dash"
	"sluice.dev/sluice/media/playback/views"
	"sluice.dev/sluice/platform/apierror"
)

// fileName is what the engine's HLS files are called: nothing that leads out of
// the stream's folder.
var fileName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,100}\.(m3u8|mp4|m4s|ts|aac|vtt)$`)

// partName is what parts of segments are called. They are for us: the engine (gohlslib 2.2)
// keeps a lock for ever when a stream ends while somebody waits for its next part.
var partName = regexp.MustCompile(`_part[0-9]+\.mp4$`)

// multivariant is what the engine calls the playlist that lists the others.
const multivariant = "index.m3u8"

// maxPlaylist bounds a playlist, in bytes: it is held in memory and rewritten.
const maxPlaylist = 1 << 20

// hls hands on a file of the engine, to whom may watch. Playlists carry the
// viewer's token on; each request for one counts the viewer as present.
func (v Service) hls(w http.ResponseWriter, r *http.Request) error {
	s, name, err := v.Watch(r)
	if err != nil {
		return err
	}
	file := chi.URLParam(r, "file")
	if !fileName.MatchString(file) || partName.MatchString(file) {
		return &apierror.Error{Code: decision.NotFound}
	}
	if err := v.playing(s); err != nil {
		return err
	}
	if language, ok := onair.ParseList(file); ok {
		return v.captionList(w, r, s, language)
	}
	if p, ok := onair.ParsePiece(file); ok {
		return v.captionPiece(w, r, s, p)
	}
	if g := v.Manifests.Growing(s.PlaybackID, file); g != nil {
		return v.grow(w, r, g)
	}
	res, err := v.ask(r.Context(), s, file, "", r.Header.Get("Range"))
	if errors.Is(err, dash.ErrNotFound) {
		return apierror.Errorf(decision.NotFound, "The stream is not on air, or it is there no longer.")
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if !strings.HasSuffix(file, ".m3u8") {
		head(w, res)
		_, err := io.Copy(w, res.Body)
		return ignoreGone(err)
	}
	if err := v.Views.Seen(r.Context(), subject(s), views.ViewerOf(r, name)); err != nil {
		return err
	}
	return v.playlist(w, r, s, file, res)
}

// playing says why s cannot be played by segments, if so.
func (v Service) playing(s streams.Stream) error {
	if v.Engine == "" {
		return apierror.Errorf(decision.NotImplemented, "There is no media engine here: streams cannot be watched.")
	}
	if s.Status == streams.Paused {
		return apierror.Errorf(decision.NotFound, "The stream is paused.")
	}
	return nil
}

// playlist hands on a playlist with the viewer's token in it, and the one that lists the
// variants with the captions that are made of the stream.
func (v Service) playlist(w http.ResponseWriter, r *http.Request, s streams.Stream, file string, res *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxPlaylist+1))
	if err == nil && len(raw) > maxPlaylist {
		err = fmt.Errorf("a playlist of more than %d bytes", maxPlaylist)
	}
	if err != nil {
		return &apierror.Error{Code: decision.BadGateway, Cause: err}
	}
	if file == multivariant {
		captions, err := v.OnAir.Renditions(r.Context(), s.ID)
		if err != nil {
			return err
		}
		raw = onair.Multivariant(raw, captions)
	}
	signed, err := whole(raw)
	if err == nil {
		signed, err = Sign(signed, r.URL.Query().Get("token"))
	}
	if err != nil {
		return &apierror.Error{Code: decision.BadGateway, Cause: err}
	}
	res.Header.Del("Content-Length")
	head(w, res)
	_, err = w.Write(signed)
	return ignoreGone(err)
}

// ask gets a file of s, or a range of it, from the engine. It fails with
// dash.ErrNotFound when there is none.
func (v Service) ask(ctx context.Context, s streams.Stream, file, query, rng string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.Engine+"/"+s.PlaybackID+"/"+file+"?"+query, nil)
	if err != nil {
		return nil, err
	}
	if rng != "" {
		req.Header.Set("Range", rng)
	}
	res, err := v.Client.Do(req)
	if err != nil {
		return nil, &apierror.Error{Code: decision.BadGateway, Cause: err}
	}
	if res.StatusCode == http.StatusOK || res.StatusCode == http.StatusPartialContent {
		return res, nil
	}
	res.Body.Close()
	if res.StatusCode == http.StatusNotFound {
		return nil, dash.ErrNotFound
	}
	return nil, &apierror.Error{Code: decision.BadGateway, Cause: fmt.Errorf("engine answered %d", res.StatusCode)}
}

// head begins the answer with what the engine says of the file.
func head(w http.ResponseWriter, res *http.Response) {
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Range", "Cache-Control"} {
		if value := res.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	w.Header().Set("Access-Control-Allow-Origin", "*") // players on any page; the token is the protection
	w.WriteHeader(res.StatusCode)
}

// ignoreGone drops the error of a viewer who has gone, or of an engine that broke
// off: the answer has begun, and nothing can be said any more.
func ignoreGone(error) error { return nil }
