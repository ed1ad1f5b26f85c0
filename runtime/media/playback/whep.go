package playback

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/runtime/media/streams"
	"sluice.dev/sluice/runtime/media/views"
)

// maxSDP bounds a session description, in bytes.
const maxSDP = 256 << 10

// sessionName is what the engine calls a WebRTC session.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// whep hands a WebRTC viewer's requests on to the engine (WHEP): an offer begins a
// session, whose address comes back with the answer, carries the viewer's token
// on, and takes candidates (PATCH) and the end (DELETE). The pictures then go
// straight from the engine to the viewer.
func (v Service) whep(w http.ResponseWriter, r *http.Request) error {
	s, viewer, err := v.Watch(r)
	if err != nil {
		return err
	}
	session := chi.URLParam(r, "session")
	switch {
	case session != "" && !sessionName.MatchString(session):
		return &controlplane.Error{Code: decision.NotFound}
	case v.WebRTC == "":
		return controlplane.Errorf(decision.NotImplemented, "There is no media engine here: streams cannot be watched.")
	case s.Status == streams.Paused:
		return controlplane.Errorf(decision.NotFound, "The stream is paused.")
	}
	res, err := v.signal(w, r, s, session)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxSDP))
	if err != nil {
		return &controlplane.Error{Code: decision.BadGateway, Cause: err}
	}
	if session == "" {
		if err := v.Views.Seen(r.Context(), subject(s), views.ViewerOf(r, viewer)); err != nil {
			return err
		}
		v.locate(w, r, s, res)
	}
	res.Header.Del("Content-Length")
	head(w, res)
	_, err = w.Write(answer)
	return ignoreGone(err)
}

// signal sends the viewer's request to the engine.
func (v Service) signal(w http.ResponseWriter, r *http.Request, s streams.Stream, session string) (*http.Response, error) {
	address := v.WebRTC + "/" + s.PlaybackID + "/whep"
	if session != "" {
		address += "/" + session
	}
	req, err := http.NewRequestWithContext(r.Context(), r.Method, address, http.MaxBytesReader(w, r.Body, maxSDP))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"Content-Type", "If-Match"} {
		req.Header.Set(name, r.Header.Get(name))
	}
	res, err := v.Client.Do(req)
	if err != nil {
		return nil, &controlplane.Error{Code: decision.BadGateway, Cause: err}
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	res.Body.Close()
	switch res.StatusCode {
	case http.StatusNotFound:
		return nil, controlplane.Errorf(decision.NotFound, "The stream is not on air, or the session is over.")
	case http.StatusBadRequest:
		return nil, controlplane.Errorf(decision.InvalidRequest, "The engine did not understand the session description.")
	}
	return nil, &controlplane.Error{Code: decision.BadGateway, Cause: fmt.Errorf("engine answered %d", res.StatusCode)}
}

// locate gives the session's address here in place of the engine's.
func (v Service) locate(w http.ResponseWriter, r *http.Request, s streams.Stream, res *http.Response) {
	at := res.Header.Get("Location")
	session := at[strings.LastIndexByte(at, '/')+1:]
	if !sessionName.MatchString(session) {
		return
	}
	address := v.url(s, "whep/"+session)
	if r.URL.RawQuery != "" {
		address += "?" + r.URL.RawQuery
	}
	w.Header().Set("Location", address)
	w.Header().Set("Access-Control-Expose-Headers", "Location")
}

// subject is what a viewer of s watches.
func subject(s streams.Stream) views.Subject {
	return views.Subject{Owner: s.Owner, Account: s.Account, ID: s.ID, Threshold: s.Threshold}
}
