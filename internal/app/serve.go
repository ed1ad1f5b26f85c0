package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
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

// shutdownPolicy is how a process stops.
type shutdownPolicy struct {
	// announce is for how long it serves on while it says that it is not well.
	announce time.Duration
	// grace is for how long requests under way may go on then.
	grace time.Duration
	// sleep waits for announce.
	sleep func(time.Duration)
}

// atOnce suits what no edge sends requests to.
var atOnce = shutdownPolicy{grace: stopTimeout, sleep: time.Sleep}

// shutdownPolicy is how the processes stop that edges send requests to.
func (e Environment) shutdownPolicy() (end shutdownPolicy, err error) {
	end.sleep = time.Sleep
	end.announce, err = time.ParseDuration(e.Get("SLUICE_ANNOUNCE"))
	if err != nil || end.announce < 0 {
		return end, fmt.Errorf("SLUICE_ANNOUNCE is %q: expected a time such as 6s, or 0s", e.Get("SLUICE_ANNOUNCE"))
	}
	return end, e.durations(map[string]*time.Duration{"SLUICE_GRACE": &end.grace})
}

// healthChecks is how edges call themselves when they ask whether a process is well.
const healthChecks = "Envoy/HC"

// failHealthChecks answers edges that ask whether the process is well with 503 while leaving
// is true: an edge takes an address that says so out at once.
func failHealthChecks(leaving *atomic.Bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if leaving.Load() && r.UserAgent() == healthChecks {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// serve listens on every endpoint before it answers on any, and then serves
// until ctx ends, the end has been announced and the requests under way are done,
// or one of them fails.
func serve(ctx context.Context, end shutdownPolicy, endpoints ...endpoint) error {
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
	var leaving atomic.Bool
	stopped := ctx
	g, ctx := errgroup.WithContext(ctx)
	for i, e := range endpoints {
		e.handler = failHealthChecks(&leaving, e.handler)
		s := e.server()
		g.Go(func() error {
			serve := s.Serve
			if e.tls != nil {
				serve = func(l net.Listener) error { return s.ServeTLS(l, "", "") }
			}
			if err := serve(listeners[i]); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			return nil
		})
		g.Go(func() error { return shutdown(ctx, stopped, s, end, &leaving) })
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

// shutdown stops s when ctx ends. The end is announced if stopped has ended, and not if
// another endpoint has failed.
func shutdown(ctx, stopped context.Context, s *http.Server, end shutdownPolicy, leaving *atomic.Bool) error {
	<-ctx.Done()
	leaving.Store(true)
	if stopped.Err() != nil {
		end.sleep(end.announce)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), end.grace)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return s.Close() // streams that do not end by themselves
	}
	return nil
}
