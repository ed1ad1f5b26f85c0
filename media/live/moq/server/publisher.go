package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/live/moq/packaging"
	"sluice.dev/sluice/media/live/moq/session"
	"sluice.dev/sluice/media/live/moq/wire"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/apierror"
)

// publisher admits somebody who publishes. It fails as streams.Service.Admit does.
func (s *Server) publisher(ctx context.Context, id, key string) (visitor, error) {
	if err := s.cfg.Playback.Streams.Admit(ctx, streams.Attempt{PlaybackID: id, Protocol: "moq", Key: key}); err != nil {
		return nil, err
	}
	stream, err := streams.ByPlayback(ctx, s.cfg.Playback.DB, id)
	if err != nil {
		return nil, err
	}
	leave, err := s.crowd.enter(accountPlace(stream.Owner))
	if err != nil {
		return nil, &apierror.Error{Code: decision.RateLimited, RetryAfter: 30, Cause: err}
	}
	return &publisher{server: s, stream: stream, free: leave}, nil
}

// publisher is somebody who has a stream's key.
type publisher struct {
	server *Server
	stream streams.Stream
	free   func()

	ctx     context.Context
	session *session.Session
	once    sync.Once
}

func (p *publisher) leave() { p.free() }

func (p *publisher) begin(ctx context.Context, s *session.Session) { p.ctx, p.session = ctx, s }

// Namespaces implements session.Handler: nothing is to be had here.
func (p *publisher) Namespaces(wire.Namespace) []wire.Namespace { return nil }

// Subscribed implements session.Handler.
func (p *publisher) Subscribed(sub *session.Subscription) {
	_ = sub.Reject(wire.RequestUnauthorized, "This session publishes. To watch, connect without the key.") // a peer that has gone needs no answer
}

// Announced implements session.Handler: the stream's own namespace, once, is taken.
func (p *publisher) Announced(ns wire.Namespace) error {
	if !ns.Equal(wire.Namespace{p.stream.PlaybackID}) {
		return errors.New("the stream's own namespace is " + p.stream.PlaybackID)
	}
	p.once.Do(func() { go p.run(ns) })
	return nil
}

// run takes the stream until somebody ends it, and closes the session.
func (p *publisher) run(ns wire.Namespace) {
	err := p.take(p.ctx, ns)
	if p.ctx.Err() != nil {
		return
	}
	code, reason := uint64(wire.CloseNoError), "The stream has ended."
	switch {
	case errors.Is(err, packaging.ErrMedia):
		code, reason = wire.CloseProtocol, string(decision.Stream005)+": "+err.Error()
		if err := p.server.cfg.Playback.Streams.EmitError(p.ctx, p.stream, decision.Stream005); err != nil {
			p.server.cfg.Log.WarnContext(p.ctx, "account not told", "cause", err)
		}
	case err != nil:
		code, reason = wire.CloseInternal, "The media engine does not take the stream."
	}
	p.server.cfg.Log.InfoContext(p.ctx, "MoQ publisher closed", "stream", p.stream.ID, "cause", err)
	p.session.Close(code, reason)
}

// take reads the catalog and hands its tracks to the engine until the first of
// them, or the engine, ends. A frame is in memory once, and no other waits behind
// it but in QUIC's windows.
func (p *publisher) take(ctx context.Context, ns wire.Namespace) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	chosen, err := p.catalog(ctx, ns)
	if err != nil {
		return err
	}
	var tracks []*intake
	var pictures *lead // nil: there are none
	for _, d := range chosen {
		t, err := p.session.Subscribe(ctx, ns, d.Name)
		if err != nil {
			return fmt.Errorf("%w: track %.100q: %w", packaging.ErrMedia, d.Name, err)
		}
		tracks = append(tracks, &intake{Track: d, from: t})
		if d.Codec.IsVideo() {
			pictures = newLead()
		}
	}
	out, err := p.server.cfg.Engine.Publish(p.stream.PlaybackID, chosen)
	if err != nil {
		return err
	}
	defer out.Close()
	ended := make(chan error, len(tracks)+1)
	for i, t := range tracks {
		pump := t.sound
		if t.Codec.IsVideo() {
			pump = t.pictures
		}
		go func() { ended <- pump(ctx, pictures, func(f packaging.Frame) error { return out.Write(i, f) }) }()
	}
	go func() { ended <- out.Wait() }() // the engine closes publishers who break a rule, or whose stream was stopped
	return <-ended
}

// catalog takes the publisher's catalog, of whichever form.
func (p *publisher) catalog(ctx context.Context, ns wire.Namespace) ([]packaging.Track, error) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	var all error
	for _, name := range []string{packaging.CatalogMSF, packaging.CatalogHang} {
		t, err := p.session.Subscribe(ctx, ns, name)
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		return described(ctx, t)
	}
	return nil, fmt.Errorf("%w: no catalog: %w", packaging.ErrMedia, all)
}

// described waits for a catalog that names tracks: programs may begin with an empty
// one.
func described(ctx context.Context, t *session.Track) ([]packaging.Track, error) {
	var last error
	for {
		o, err := t.Next(ctx)
		if err != nil {
			return nil, errors.Join(last, err)
		}
		tracks, err := packaging.ParseCatalog(o.Payload)
		if err == nil {
			return tracks, nil
		}
		last = err
	}
}
