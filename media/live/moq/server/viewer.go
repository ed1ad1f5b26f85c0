package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/live/moq/broadcast"
	"sluice.dev/sluice/media/live/moq/packaging"
	"sluice.dev/sluice/media/live/moq/rtsp"
	"sluice.dev/sluice/media/live/moq/session"
	"sluice.dev/sluice/media/live/moq/wire"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/media/playback/views"
	"sluice.dev/sluice/platform/apierror"
)

// Endpoint is the first part of every path: a stream is at Endpoint, a slash and its
// playback id.
const Endpoint = "/moq"

// maxAddress bounds the path and query of a session, in bytes; it is read in linear
// time.
const maxAddress = 4 << 10

// admit decides who comes with an address such as /moq/play_…?token=… (to watch) or
// ?key=… (to publish). r says from where, and by which program.
func (s *Server) admit(ctx context.Context, address string, r *http.Request) (visitor, error) {
	if len(address) > maxAddress {
		return nil, &apierror.Error{Code: decision.NotFound}
	}
	u, err := url.ParseRequestURI(address)
	if err != nil {
		return nil, &apierror.Error{Code: decision.NotFound}
	}
	id, ok := strings.CutPrefix(u.Path, Endpoint+"/")
	if !ok {
		return nil, &apierror.Error{Code: decision.NotFound}
	}
	q := u.Query()
	if q.Has("key") {
		return s.publisher(ctx, id, q.Get("key"))
	}
	return s.viewer(ctx, id, q.Get("token"), r)
}

// viewer admits somebody who watches.
func (s *Server) viewer(ctx context.Context, id, token string, r *http.Request) (visitor, error) {
	stream, grant, err := s.cfg.Playback.Admit(ctx, id, token)
	if err != nil {
		return nil, err
	}
	if stream.Status == streams.Paused {
		return nil, apierror.Errorf(decision.NotFound, "The stream is paused.")
	}
	leave, err := s.crowd.enter(accountPlace(stream.Owner))
	if err != nil {
		return nil, &apierror.Error{Code: decision.RateLimited, RetryAfter: 30, Cause: err}
	}
	return &viewer{server: s, stream: stream, expires: grant.Expires, who: views.ViewerOf(r, grant.Viewer), free: leave}, nil
}

// viewer is somebody who watches a stream.
type viewer struct {
	server  *Server
	stream  streams.Stream
	expires time.Time // zero: never
	who     views.Viewer
	free    func()

	session *session.Session
	watched atomic.Bool // it has subscribed to something
}

// present is how often a viewer is counted, and the stream looked at: several times
// in views.Present.
const present = 10 * time.Second

func (v *viewer) leave() { v.free() }

func (v *viewer) begin(ctx context.Context, s *session.Session) {
	v.session = s
	go v.stay(ctx)
}

// stay counts the viewer while he is there, and ends the session when his token
// does, or the stream is paused or deleted.
func (v *viewer) stay(ctx context.Context) {
	tick := time.NewTicker(present)
	defer tick.Stop()
	var end <-chan time.Time
	if !v.expires.IsZero() {
		timer := time.NewTimer(v.expires.Sub(v.server.cfg.Playback.Now()))
		defer timer.Stop()
		end = timer.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-end:
			v.session.Close(wire.CloseUnauthorized, "The token has expired.")
			return
		case <-tick.C:
		}
		s, err := streams.ByPlayback(ctx, v.server.cfg.Playback.DB, v.stream.PlaybackID)
		switch {
		case apierror.Code(err) == decision.NotFound:
			v.session.Close(wire.CloseNoError, "The stream was deleted.")
			return
		case err == nil && s.Status == streams.Paused:
			v.session.Close(wire.CloseNoError, "The stream is paused.")
			return
		case err == nil && v.watched.Load():
			err = v.count(ctx)
		}
		if err != nil && ctx.Err() == nil {
			v.server.cfg.Log.WarnContext(ctx, "viewer not counted", "cause", err)
		}
	}
}

// count counts the viewer as present.
func (v *viewer) count(ctx context.Context) error {
	return v.server.cfg.Playback.Views.Seen(ctx, views.Subject{Owner: v.stream.Owner, ID: v.stream.ID}, v.who)
}

// Namespaces implements session.Handler: the stream's own.
func (v *viewer) Namespaces(prefix wire.Namespace) []wire.Namespace {
	own := wire.Namespace{v.stream.PlaybackID}
	if own.HasPrefix(prefix) {
		return []wire.Namespace{own}
	}
	return nil
}

// Announced implements session.Handler.
func (v *viewer) Announced(wire.Namespace) error {
	return errors.New("to publish, connect with the stream's key: ?key=…")
}

// Subscribed implements session.Handler.
func (v *viewer) Subscribed(sub *session.Subscription) {
	go func() {
		if err := v.serve(sub); err != nil && sub.Context().Err() == nil {
			v.server.cfg.Log.DebugContext(sub.Context(), "subscription ended", "cause", err)
		}
	}()
}

// soon is how long a subscription waits for the tracks of a stream to be known.
const soon = 8 * time.Second

// serve answers one subscription and serves it to its end.
func (v *viewer) serve(sub *session.Subscription) error {
	if !sub.Request.Namespace.Equal(wire.Namespace{v.stream.PlaybackID}) {
		return sub.Reject(wire.RequestNoTrack, "There is only the namespace of the stream here: "+v.stream.PlaybackID)
	}
	ctx, cancel := context.WithTimeout(sub.Context(), soon)
	defer cancel()
	live, leave, err := v.server.hub.join(ctx, v.stream.PlaybackID)
	switch {
	case errors.Is(err, packaging.ErrMedia):
		return sub.Reject(wire.RequestNotSupported, "The stream has no track in H.264, H.265, AAC or Opus.")
	case errors.Is(err, rtsp.ErrOff) || errors.Is(err, errEnded):
		return sub.Reject(wire.RequestNoTrack, "The stream is not on air.")
	case err != nil:
		return sub.Reject(wire.RequestTimeout, "The stream did not answer in time.")
	}
	defer leave()
	track := live.Track(sub.Request.Name)
	if track == nil {
		return sub.Reject(wire.RequestNoTrack, "The catalog has no such track.")
	}
	if v.watched.CompareAndSwap(false, true) {
		if err := v.count(sub.Context()); err != nil {
			v.server.cfg.Log.WarnContext(ctx, "viewer not counted", "cause", err)
		}
	}
	edge := track.Edge()
	if err := sub.Accept(edge); err != nil {
		return err
	}
	err = track.Serve(sub.Context(), broadcast.RangeOf(sub.Request), func(ctx context.Context, group uint64, priority byte) (broadcast.Writer, error) {
		return sub.Open(ctx, group, priority)
	})
	if err != nil {
		return err
	}
	return sub.Done(wire.DoneTrackEnded, "The stream has ended.")
}
