package playback

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/captions/onair"
	"sluice.dev/sluice/media/live/signalling"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/playback/dash"
	"sluice.dev/sluice/media/playback/signing"
	"sluice.dev/sluice/media/playback/views"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/storage/postgres"
)

// bodyLimit bounds the JSON bodies of this package, in bytes.
const bodyLimit = 16 << 10

// Service is how streams are watched. Every field but Engine is
// required.
type Service struct {
	DB       postgres.DB
	Streams  streams.Service
	Keys     *signing.Keys
	Views    views.Counter
	Playback string // public address of /v1/playback, without a trailing slash
	// Engine is the address below which the media engine serves HLS, as
	// <Engine>/<playback id>/index.m3u8. Empty: there is no engine, and playback
	// answers 501.
	Engine    string
	Manifests *dash.Live       // of the streams that the engine serves
	OnAir     onair.Store      // of captions
	WebRTC    signalling.Relay // to the same engine
	Client    *http.Client     // to the engine
	Now       func() time.Time
}

// Routes adds the routes of a stream's owner to r, which must verify the caller's
// identity first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get("/v1/streams/{id}/embed", owner.HandleFor(a, http.StatusOK, v.Streams.FromPath, v.embed))
	r.Post("/v1/streams/{id}/tokens", a.Handle(v.token))
}

// PublicRoutes adds the routes of viewers.
func (v Service) PublicRoutes(r chi.Router, a httpapi.Adapter) {
	r.Get("/v1/playback/{playback}/player", a.Handle(v.player))
	r.Post("/v1/playback/{playback}/whep", a.Handle(v.whep))
	r.Patch("/v1/playback/{playback}/whep/{session}", a.Handle(v.whep))
	r.Delete("/v1/playback/{playback}/whep/{session}", a.Handle(v.whep))
	r.Get("/v1/playback/{playback}/index.mpd", a.Handle(v.dash))
	r.Get("/v1/playback/{playback}/low-latency.mpd", a.Handle(v.lowLatency))
	r.Get("/v1/playback/{playback}/{file}", a.Handle(v.hls))
}

// Watch returns the stream of the playback id in r's path and the name of its
// viewer, if r may watch it.
func (v Service) Watch(r *http.Request) (streams.Stream, string, error) {
	s, g, err := v.Admit(r.Context(), chi.URLParam(r, "playback"), r.URL.Query().Get("token"))
	return s, g.Viewer, err
}

// url is the public address of a file of the stream.
func (v Service) url(s streams.Stream, file string) string {
	return v.Playback + "/" + s.PlaybackID + "/" + file
}
