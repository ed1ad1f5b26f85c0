package ingest

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/live/signalling"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// PublicRoutes adds the routes of publishers, whose credential is the stream key.
func (v Service) PublicRoutes(r chi.Router, a httpapi.Adapter) {
	r.Post("/v1/ingest/{id}/whip", a.Handle(v.whip))
	r.Patch("/v1/ingest/{id}/whip/{session}", a.Handle(v.whip))
	r.Delete("/v1/ingest/{id}/whip/{session}", a.Handle(v.whip))
}

// whip takes a WebRTC publisher (WHIP): an offer with the stream key as bearer
// token begins a session. What the engine would refuse without a word is refused
// here with its code: STREAM_004, STREAM_001, STREAM_003, and STREAM_005 for an
// offer without a codec that players understand. The name of a session, which only
// its publisher knows, admits to it.
func (v Service) whip(w http.ResponseWriter, r *http.Request) error {
	s, err := v.published(r)
	if err != nil {
		return err
	}
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	q := signalling.Request{Stream: s.PlaybackID, Verb: "whip", Session: chi.URLParam(r, "session"), Key: key, Here: v.Streams.Endpoints.WHIP(s)}
	if q.Session == "" {
		attempt := streams.Attempt{PlaybackID: s.PlaybackID, Protocol: "webrtc", Key: key}
		if err := v.Streams.Admit(r.Context(), attempt); err != nil {
			return err
		}
	}
	if err := v.WebRTC.Check(q); err != nil {
		return err
	}
	body, err := signalling.Body(w, r)
	if err != nil {
		return err
	}
	if q.Session == "" && !signalling.Understood(body) {
		if err := v.Streams.EmitError(r.Context(), s, decision.Stream005); err != nil {
			return err
		}
		return &apierror.Error{Code: decision.Stream005}
	}
	answer, err := v.WebRTC.Forward(r, q, body)
	if err != nil {
		return err
	}
	answer.Send(w)
	return nil
}

// published is the stream of the ingest in the path, for a publisher. One that is
// not there looks like one whose key is wrong: nobody learns which streams are.
func (v Service) published(r *http.Request) (streams.Stream, error) {
	id := chi.URLParam(r, "id")
	if !ident.Valid("ing", id) {
		return streams.Stream{}, &apierror.Error{Code: decision.NotFound}
	}
	s, err := streams.ByID(r.Context(), v.Streams.DB, "strm"+strings.TrimPrefix(id, "ing"))
	if apierror.Code(err) == decision.NotFound {
		err = &apierror.Error{Code: decision.Stream004}
	}
	return s, err
}
