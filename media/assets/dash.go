package assets

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/media/files/fragments"
	"sluice.dev/sluice/media/playback/dash"
	"sluice.dev/sluice/media/playback/views"
	"sluice.dev/sluice/platform/apierror"
)

// maxCuts bounds what Cuts holds, in bytes: a film of an hour takes some four million.
const maxCuts = 96 << 20

// Cuts remembers how films are files of fragments. Its zero value is ready.
type Cuts struct {
	mu    sync.Mutex
	films map[string]*cutFilm // by file
	bytes int
}

// cutFilm is one film; turn is held by whoever reads it.
type cutFilm struct {
	turn chan struct{}
	film *fragments.Film // nil: not read yet
	size int
}

// of returns the film of a file, which read reads when nobody has: once, however many
// ask.
func (c *Cuts) of(ctx context.Context, file string, read func() (fragments.Film, error)) (fragments.Film, error) {
	e := c.entry(file)
	select {
	case <-ctx.Done():
		return fragments.Film{}, ctx.Err()
	case e.turn <- struct{}{}:
	}
	defer func() { <-e.turn }()
	if e.film != nil {
		return *e.film, nil
	}
	f, err := read()
	if err != nil {
		c.forget(file, e)
		return f, err
	}
	e.film = &f
	c.count(file, e)
	return f, nil
}

// entry finds a file, or begins to remember it.
func (c *Cuts) entry(file string) *cutFilm {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.films == nil {
		c.films = map[string]*cutFilm{}
	}
	e, ok := c.films[file]
	if !ok {
		e = &cutFilm{turn: make(chan struct{}, 1)}
		c.films[file] = e
	}
	return e
}

// forget drops e, which could not be read.
func (c *Cuts) forget(file string, e *cutFilm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.films[file] == e {
		delete(c.films, file)
	}
}

// count adds e, which was just read, to what is held; others give way for it.
func (c *Cuts) count(file string, e *cutFilm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const overhead = 16 // bytes of a part
	for _, t := range e.film.Tracks {
		e.size += len(t.Own) + overhead*len(t.Parts)
	}
	if c.films[file] != e {
		return // it gave way meanwhile
	}
	if e.size > maxCuts {
		delete(c.films, file) // it is read for each request
		return
	}
	c.bytes += e.size
	for id, other := range c.films {
		if c.bytes <= maxCuts {
			break
		}
		if id != file {
			c.bytes -= other.size
			delete(c.films, id)
		}
	}
}

// fragments is how the file of a is files of fragments, and a reader of that file.
func (v Service) fragments(ctx context.Context, a Asset) (fragments.Film, *files.Reader, error) {
	file, err := files.Open(ctx, v.DB, a.FileID)
	if err != nil {
		return fragments.Film{}, nil, err
	}
	film, err := v.CutFilms.of(ctx, a.FileID, func() (fragments.Film, error) {
		return v.Probe.Cut(ctx, a.Owner, file, file.Size())
	})
	if err = notAccepted(err); err != nil {
		return film, nil, err
	}
	if len(film.Tracks) == 0 {
		return film, nil, apierror.Errorf(decision.NotFound, "The file has no track that is played by DASH.")
	}
	return film, file, nil
}

// manifest answers GET /v1/playback/files/{id}/index.mpd to the bearer of the file's
// token, and counts a view.
func (v Service) manifest(w http.ResponseWriter, r *http.Request) error {
	a, err := v.Opened(r)
	if err != nil {
		return err
	}
	film, _, err := v.fragments(r.Context(), a)
	if err != nil {
		return err
	}
	text, err := dash.OnDemand(film, r.URL.Query().Get("token"), func(track int) string { return fmt.Sprintf("track%d.mp4", track+1) })
	if err != nil {
		return err
	}
	if r.Method == http.MethodGet {
		if err := v.Views.Seen(r.Context(), views.Subject{Owner: a.Owner, ID: a.ID}, views.ViewerOf(r, "")); err != nil {
			return err
		}
	}
	h := w.Header()
	h.Set("Content-Type", dash.ContentType)
	h.Set("Cache-Control", "private, max-age=3600")
	h.Set("Access-Control-Allow-Origin", "*") // players on any page; the token is the protection
	_, _ = w.Write(text)                      // to a viewer who may have gone
	return nil
}

// trackName is what the tracks of a file are called.
var trackName = regexp.MustCompile(`^track([0-9]{1,3})\.mp4$`)

// track answers GET /v1/playback/files/{id}/track{n}.mp4: one track of the file, in
// fragments. Byte ranges are served.
func (v Service) track(w http.ResponseWriter, r *http.Request) error {
	a, err := v.Opened(r)
	if err != nil {
		return err
	}
	m := trackName.FindStringSubmatch(chi.URLParam(r, "track"))
	if m == nil {
		return &apierror.Error{Code: decision.NotFound}
	}
	n, _ := strconv.Atoi(m[1]) // three digits
	film, file, err := v.fragments(r.Context(), a)
	if err != nil {
		return err
	}
	if n < 1 || n > len(film.Tracks) {
		return &apierror.Error{Code: decision.NotFound}
	}
	cut := film.Tracks[n-1]
	h := w.Header()
	h.Set("Content-Type", cut.Mime())
	h.Set("ETag", fmt.Sprintf(`"%s-%d"`, a.FileID, n))
	h.Set("Cache-Control", "private, max-age=3600")
	h.Set("Access-Control-Allow-Origin", "*")
	if strings.Contains(r.Header.Get("Range"), ",") {
		r.Header.Del("Range") // as serve does
	}
	http.ServeContent(w, r, "", time.Time{}, fragments.NewReader(cut, file))
	return nil
}
