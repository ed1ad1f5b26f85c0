package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// endpoint is one address and what answers there.
type endpoint struct {
	name, addr string
	handler    http.Handler
	h2c        bool        // HTTP/2 without TLS too, for gRPC
	streams    bool        // responses may last: no write timeout
	tls        *tls.Config // nil: plain text
}

// Timeouts of our own servers. They stand behind an edge, which has stricter
// ones; these bound a caller that reaches them directly.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 60 * time.Second
	idleTimeout   = 5 * time.Minute
	stopTimeout   = 8 * time.Second
)

// serve listens on every endpoint before it answers on any, and then serves
// until ctx ends and the requests under way are done, or one of them fails.
func serve(ctx context.Context, endpoints ...endpoint) error {
	listeners := make([]net.Listener, 0, len(endpoints))
	for _, e := range endpoints {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", e.addr)
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			return fmt.Errorf("listen for the %s on %s: %w", e.name, e.addr, err)
		}
		listeners = append(listeners, l)
	}
	g, ctx := errgroup.WithContext(ctx)
	for i, e := range endpoints {
		s := e.server()
		g.Go(func() error {
			if err := e.serve(s, listeners[i]); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			return nil
		})
		g.Go(func() error { return shutdown(ctx, s) })
		slog.Info("listening", "endpoint", e.name, "addr", e.addr)
	}
	return g.Wait()
}

func (e endpoint) server() *http.Server {
	s := &http.Server{Handler: e.handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10}
	if !e.streams {
		s.ReadTimeout, s.WriteTimeout = bodyTimeout, bodyTimeout
	}
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(e.h2c && e.tls == nil)
	s.Protocols.SetHTTP2(e.tls != nil)
	s.TLSConfig = e.tls
	return s
}

func (e endpoint) serve(s *http.Server, l net.Listener) error {
	if e.tls != nil {
		return s.ServeTLS(l, "", "")
	}
	return s.Serve(l)
}

func shutdown(ctx context.Context, s *http.Server) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return s.Close() // streams that do not end by themselves
	}
	return nil
}
