// Package server serves live streams by MoQ, over WebTransport and over QUIC itself,
// on one UDP port: players subscribe to what is live, publishers with a stream's key
// give it to the media engine.
//
// Nobody gets a session before the token or the key in his address was checked. A
// session costs a few goroutines and the windows of QUIC; how many there may be,
// of one address and of one account's streams, Limits says.
package server

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

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/live/moq/rtsp"
	"sluice.dev/sluice/media/live/moq/session"
	"sluice.dev/sluice/media/live/moq/wire"
	"sluice.dev/sluice/media/playback"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

// Config is what a server works with. Every field but Limits is required.
type Config struct {
	Playback playback.Service // who may watch; with Streams, who may publish
	Engine   rtsp.Engine
	// Certificate is the one to show; see tls.Config.GetCertificate.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Respond     httpapi.Adapter
	Log         *slog.Logger
	Limits      Limits
}

// arrival is how long a connection may take until it has a session.
const arrival = 10 * time.Second

// Windows of QUIC: what a peer may send before it is read, in bytes.
const (
	streamWindow     = 4 << 20
	connectionWindow = 8 << 20
)

// Streams that a peer may have open at once. WebTransport needs three of its own.
const (
	maxStreams    = 8
	maxUniStreams = 64
)

// transport is QUIC as it is spoken here.
func transport() *quic.Config {
	return &quic.Config{
		EnableDatagrams: true, EnableStreamResetPartialDelivery: true, // WebTransport wants both
		MaxIncomingStreams: maxStreams, MaxIncomingUniStreams: maxUniStreams,
		MaxStreamReceiveWindow: streamWindow, MaxConnectionReceiveWindow: connectionWindow,
		HandshakeIdleTimeout: arrival, MaxIdleTimeout: 30 * time.Second, KeepAlivePeriod: 10 * time.Second,
	}
}

// Server serves one address.
type Server struct {
	cfg   Config
	hub   *hub
	crowd *crowd
	h3    *http3.Server
	wt    *webtransport.Server
}

// New returns a server.
func New(c Config) *Server {
	s := &Server{cfg: c, hub: newHub(c.Engine, c.Log), crowd: newCrowd(c.Limits)}
	s.h3 = &http3.Server{Handler: c.Respond.Handle(s.connect), MaxHeaderBytes: 16 << 10, QUICConfig: transport(),
		ConnContext: guested}
	// Any page may show a stream: the token is the protection.
	s.wt = &webtransport.Server{H3: s.h3, CheckOrigin: func(*http.Request) bool { return true }, ApplicationProtocols: []string{wire.ALPN}}
	return s
}

// Serve takes connections from conn until ctx ends, and closes it.
func (s *Server) Serve(ctx context.Context, conn net.PacketConn) error {
	q := &quic.Transport{Conn: conn, VerifySourceAddress: func(net.Addr) bool { return s.crowd.large() }}
	defer func() { _ = conn.Close() }()
	defer func() { _ = q.Close() }()
	defer func() { _ = s.wt.Close() }()
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: s.cfg.Certificate, NextProtos: []string{http3.NextProtoH3, wire.ALPN}}
	listener, err := q.ListenEarly(tlsConfig, transport())
	if err != nil {
		return fmt.Errorf("listen for MoQ: %w", err)
	}
	defer func() { _ = listener.Close() }()
	for {
		c, err := listener.Accept(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept MoQ: %w", err)
		}
		go s.take(ctx, c)
	}
}

// guest is a connection; it must have a session soon.
type guest struct {
	conn     *quic.Conn
	sessions atomic.Int32
}

type guestKey struct{}

// guested gives each connection of HTTP/3 its guest.
func guested(ctx context.Context, c *quic.Conn) context.Context {
	g := &guest{conn: c}
	timer := time.AfterFunc(arrival, func() {
		if g.sessions.Load() == 0 {
			_ = c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "no session") // it is closed in any case
		}
	})
	context.AfterFunc(c.Context(), func() { timer.Stop() })
	return context.WithValue(ctx, guestKey{}, g)
}

// take serves one connection.
func (s *Server) take(ctx context.Context, c *quic.Conn) {
	leave, err := s.crowd.enter(addressPlace(c.RemoteAddr()))
	if err != nil {
		_ = c.CloseWithError(wire.CloseTooMany, err.Error()) // it is closed in any case
		return
	}
	defer leave()
	if c.ConnectionState().TLS.NegotiatedProtocol != http3.NextProtoH3 {
		s.run(ctx, session.OverQUIC(c), func(setup wire.Setup) (visitor, error) {
			return s.admit(ctx, setup.Path, &http.Request{RemoteAddr: c.RemoteAddr().String(), Header: http.Header{}})
		})
		return
	}
	if err := s.wt.ServeQUICConn(c); err != nil {
		s.cfg.Log.DebugContext(ctx, "connection ended", "cause", err)
	}
}

// connect answers the CONNECT of WebTransport: with an error of the API's form, or
// with a session, which it serves.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodConnect {
		return &apierror.Error{Code: decision.NotFound}
	}
	r.Header.Del(identity.AddressHeader) // no edge stands before this port
	v, err := s.admit(r.Context(), r.URL.RequestURI(), r)
	if err != nil {
		return err
	}
	wt, err := s.wt.Upgrade(w, r)
	if err != nil {
		v.leave()
		return &apierror.Error{Code: decision.InvalidRequest, Cause: err}
	}
	g := r.Context().Value(guestKey{}).(*guest)
	g.sessions.Add(1)
	s.run(r.Context(), session.OverWebTransport(wt), func(wire.Setup) (visitor, error) { return v, nil })
	// One session is all that a connection is for.
	_ = g.conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "") // it is closed in any case
	return nil
}

// visitor decides about a session, once he has one.
type visitor interface {
	session.Handler
	// begin is called before all other methods. ctx ends with the session.
	begin(ctx context.Context, s *session.Session)
	// leave gives back what the visitor has; it is called once.
	leave()
}

// run serves one session until its end.
func (s *Server) run(ctx context.Context, conn session.Conn, admit func(wire.Setup) (visitor, error)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(conn.Context(), cancel)
	var v visitor
	ses, err := session.Accept(ctx, conn, func(setup wire.Setup) (session.Handler, error) {
		var err error
		if v, err = admit(setup); err != nil {
			return nil, said(err)
		}
		return v, nil
	})
	if v != nil {
		defer v.leave()
	}
	if err == nil {
		v.begin(ctx, ses)
		err = ses.Run(ctx)
	}
	s.cfg.Log.DebugContext(ctx, "MoQ session ended", "cause", err)
}

// said is err as MoQ can say it: without its causes.
func said(err error) error {
	e := apierror.From(err)
	message := e.Message
	if message == "" {
		message = decision.Lookup(e.Code).Message
	}
	return errors.New(string(e.Code) + ": " + message)
}
