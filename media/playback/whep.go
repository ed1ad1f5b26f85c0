package playback

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/live/signalling"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/playback/views"
	"sluice.dev/sluice/platform/apierror"
)

// whep hands a WebRTC viewer's requests on to the engine (WHEP): an offer begins a
// session, whose address comes back with the answer, carries the viewer's token
// on, and takes candidates (PATCH) and the end (DELETE). The pictures then go
// straight from the engine to the viewer.
func (v Service) whep(w http.ResponseWriter, r *http.Request) error {
	s, viewer, err := v.Watch(r)
	if err != nil {
		return err
	}
	q := signalling.Request{Stream: s.PlaybackID, Verb: "whep", Session: chi.URLParam(r, "session"), Here: v.url(s, "whep"), Query: r.URL.RawQuery}
	if err := v.WebRTC.Check(q); err != nil {
		return err
	}
	if s.Status == streams.Paused {
		return apierror.Errorf(decision.NotFound, "The stream is paused.")
	}
	body, err := signalling.Body(w, r)
	if err != nil {
		return err
	}
	answer, err := v.WebRTC.Forward(r, q, body)
	if err != nil {
		return err
	}
	if q.Session == "" {
		if err := v.Views.Seen(r.Context(), subject(s), views.ViewerOf(r, viewer)); err != nil {
			return err
		}
	}
	answer.Send(w)
	return nil
}

// subject is what a viewer of s watches.
func subject(s streams.Stream) views.Subject {
	return views.Subject{Owner: s.Owner, ID: s.ID}
}
