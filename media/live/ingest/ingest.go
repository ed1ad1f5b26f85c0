// Package ingest shows a stream from the side of whoever publishes it: one
// address to send to, and the outputs that come of it. An ingest has no row of its
// own: its id is that of its stream under another prefix.
package ingest

import (
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/live/signalling"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Input is the body of POST /v1/ingest: that of POST /v1/streams, or the id of a
// stream that is there already.
type Input struct {
	streams.Input
	StreamID string `json:"stream_id"`
}

// View is an ingest as callers see it.
type View struct {
	ID        string             `json:"id"`
	StreamID  string             `json:"stream_id"`
	Title     string             `json:"title"`
	Protocol  string             `json:"protocol"`
	Status    streams.Status     `json:"status"`
	Ingest    streams.IngestView `json:"ingest"` // with the key where the stream was made just now
	Outputs   []Output           `json:"outputs"`
	CreatedAt time.Time          `json:"created_at"`
}

// Output is one way in which an ingest can be watched.
type Output struct {
	Protocol      string `json:"protocol"` // hls or webrtc
	URL           string `json:"url"`
	Status        string `json:"status"` // active while the stream is live
	TokenRequired bool   `json:"token_required"`
}

// Service is what can be done with ingests.
type Service struct {
	Streams streams.Service
	WebRTC  signalling.Relay // to the media engine
}

// Routes adds the routes to r, which must verify the caller's identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	r.Post("/v1/ingest", owner.Handle(a, http.StatusCreated, v.create))
	r.Get("/v1/ingest/{id}", owner.HandleFor(a, http.StatusOK, v.stream, v.get))
	r.Get("/v1/ingest/{id}/outputs", owner.HandleFor(a, http.StatusOK, v.stream, v.outputs))
}

// create answers POST /v1/ingest.
func (v Service) create(o owner.Owner, r *http.Request, in Input) (View, error) {
	if in.StreamID != "" {
		s, err := v.existing(r, o, in)
		return v.view(s, ""), err
	}
	s, key, err := v.Streams.Create(r.Context(), o, in.Input)
	return v.view(s, key), err
}

// existing finds the stream that the body names; nothing else may be in it.
func (v Service) existing(r *http.Request, o owner.Owner, in Input) (streams.Stream, error) {
	if in.Input != (streams.Input{}) {
		return streams.Stream{}, apierror.Invalid([]decision.Detail{
			{Field: "stream_id", Issue: "cannot be combined with the fields of a new stream", Expected: "stream_id alone"}})
	}
	s, err := v.Streams.Get(r.Context(), o, in.StreamID)
	if apierror.Code(err) == decision.NotFound {
		err = apierror.Invalid([]decision.Detail{{Field: "stream_id", Issue: "names no stream of yours"}})
	}
	return s, err
}

// target reads which ingest the path names.
var target = owner.InPath("ing")

// stream is the caller's stream behind the ingest in the path.
func (v Service) stream(r *http.Request) (streams.Stream, error) {
	t, err := target(r)
	if err != nil {
		return streams.Stream{}, err
	}
	return v.Streams.Get(r.Context(), t.Owner, "strm"+strings.TrimPrefix(t.ID, "ing"))
}

// get answers GET /v1/ingest/{id}.
func (v Service) get(s streams.Stream, _ *http.Request, _ httpapi.None) (View, error) {
	return v.view(s, ""), nil
}

// outputs answers GET /v1/ingest/{id}/outputs.
func (v Service) outputs(s streams.Stream, _ *http.Request, _ httpapi.None) (map[string][]Output, error) {
	return map[string][]Output{"data": v.view(s, "").Outputs}, nil
}

// view shows a stream as an ingest. key is the text of its stream key where it
// was made just now.
func (v Service) view(s streams.Stream, key string) View {
	whole := v.Streams.Endpoints.ViewOf(s, key)
	status := "inactive"
	if s.Status == streams.Live {
		status = "active"
	}
	signed := s.PlaybackPolicy == "signed"
	return View{ID: "ing" + strings.TrimPrefix(s.ID, "strm"), StreamID: s.ID, Title: s.Title, Protocol: s.Protocol, Status: s.Status,
		Ingest: whole.Ingest, CreatedAt: whole.CreatedAt, Outputs: []Output{
			{Protocol: "hls", URL: whole.Playback.HLS, Status: status, TokenRequired: signed},
			{Protocol: "dash", URL: whole.Playback.DASH, Status: status, TokenRequired: signed},
			{Protocol: "webrtc", URL: whole.Playback.WebRTC, Status: status, TokenRequired: signed}}}
}
