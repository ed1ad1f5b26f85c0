package session_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"sluice.dev/sluice/media/live/moq/certificate"
	"sluice.dev/sluice/media/live/moq/session"
	"sluice.dev/sluice/media/live/moq/wire"
)

// host takes whatever is asked for, and keeps it.
type host struct{ subs chan *session.Subscription }

func (h host) Subscribed(s *session.Subscription) {
	_ = s.Accept(nil) // a peer that has gone needs no answer
	h.subs <- s
}
func (host) Announced(wire.Namespace) error                    { return nil }
func (host) Namespaces(prefix wire.Namespace) []wire.Namespace { return []wire.Namespace{{"play_1"}} }

// peer is the other side of a session, which writes what it likes.
type peer struct {
	conn    *quic.Conn
	control *quic.Stream
	in      *bufio.Reader
	subs    chan *session.Subscription
	ended   chan error // of the session
}

// meet connects a peer, which has not said anything yet.
func meet(t *testing.T) *peer {
	t.Helper()
	cert, err := certificate.Make([]byte("secret"), time.Now().Unix()/(10*24*60*60))
	if err != nil {
		t.Fatal(err)
	}
	l, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{*cert}, NextProtos: []string{wire.ALPN}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{subs: make(chan *session.Subscription, 64), ended: make(chan error, 1)}
	go func() {
		c, err := l.Accept(t.Context())
		if err != nil {
			p.ended <- err
			return
		}
		s, err := session.Accept(t.Context(), session.OverQUIC(c), func(wire.Setup) (session.Handler, error) { return host{p.subs}, nil })
		if err == nil {
			err = s.Run(t.Context())
		}
		p.ended <- err
	}()
	p.conn, err = quic.DialAddr(t.Context(), l.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.conn.CloseWithError(0, "")
		_ = l.Close()
	})
	return p
}

// open is meet with a control stream, on which raw is said.
func open(t *testing.T, raw []byte) *peer {
	t.Helper()
	p := meet(t)
	var err error
	if p.control, err = p.conn.OpenStreamSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.in = bufio.NewReader(p.control)
	p.say(t, raw)
	return p
}

func (p *peer) say(t *testing.T, raw []byte) {
	t.Helper()
	if _, err := p.control.Write(raw); err != nil {
		t.Fatal(err)
	}
}

// hear is the next message, of this type.
func (p *peer) hear(t *testing.T, want wire.Type) wire.Message {
	t.Helper()
	m, err := wire.ReadMessage(p.in)
	if err != nil || m.Type != want {
		t.Fatalf("%+v, %v, want type %#x", m, err, want)
	}
	return m
}

// wantClosed fails unless the session ends, with a code.
func (p *peer) wantClosed(t *testing.T, name string, code quic.ApplicationErrorCode) {
	t.Helper()
	<-p.conn.Context().Done()
	var why *quic.ApplicationError
	if !errors.As(context.Cause(p.conn.Context()), &why) || why.ErrorCode != code || len(why.ErrorMessage) > 1024 {
		t.Errorf("%s: %v, want code %#x", name, context.Cause(p.conn.Context()), code)
	}
	if err := <-p.ended; err == nil {
		t.Errorf("%s: the session ended without an error", name)
	}
}

var setup = wire.Setup{Versions: []uint64{wire.Version}, MaxRequestID: 100}.Message(wire.ClientSetup).Append(nil)

// subscribe is a SUBSCRIBE with an id.
func subscribe(id uint64) []byte {
	return wire.Request{ID: id, Namespace: wire.Namespace{"play_1"}, Name: "video", Forward: 1, Filter: wire.LargestObject}.Message().Append(nil)
}

// Whoever breaks a rule of the draft loses the session, with the code that it has for
// that, and what he had subscribed to ends.
func TestRulesThatAreBroken(t *testing.T) {
	t.Parallel()
	long := wire.Message{Type: wire.GoAway, Body: make([]byte, wire.MaxMessage+1)}.Append(nil)
	for name, c := range map[string]struct {
		raw  []byte
		code quic.ApplicationErrorCode
	}{
		"an unknown message":        {wire.Message{Type: 0x7f}.Append(nil), wire.CloseProtocol},
		"setup twice":               {setup, wire.CloseProtocol},
		"a message that is cut":     {wire.Message{Type: wire.Subscribe, Body: []byte{0}}.Append(nil), wire.CloseProtocol},
		"a message that is long":    {long, wire.CloseProtocol},
		"an id of ours":             {subscribe(3), wire.CloseProtocol},
		"an id twice":               {append(subscribe(2), subscribe(2)...), wire.CloseProtocol},
		"an id beyond the grant":    {subscribe(128), wire.CloseTooMany},
		"a fetch beyond the grant":  {wire.Number(wire.Fetch, 1<<20).Append(nil), wire.CloseTooMany},
		"an answer that is damaged": {wire.Message{Type: wire.SubscribeOK, Body: []byte{0xff}}.Append(nil), wire.CloseProtocol},
	} {
		p := open(t, setup)
		p.hear(t, wire.ServerSetup)
		p.say(t, subscribe(0))
		sub := <-p.subs
		p.say(t, c.raw)
		p.wantClosed(t, name, c.code)
		<-sub.Context().Done()
	}
	for name, c := range map[string]struct {
		raw  []byte
		code quic.ApplicationErrorCode
	}{
		"no setup":        {subscribe(0), wire.CloseProtocol},
		"no message":      {[]byte{0x20, 0xff, 0xff}, wire.CloseProtocol},
		"another version": {wire.Setup{Versions: []uint64{1}}.Message(wire.ClientSetup).Append(nil), wire.CloseVersionFailed},
	} {
		open(t, c.raw).wantClosed(t, name, c.code)
	}
}

// A connection on which nothing is said ends by itself.
func TestAPeerThatSaysNothing(t *testing.T) {
	t.Parallel()
	meet(t).wantClosed(t, "no control stream", wire.CloseControlLate)
}

// A peer has a bounded number of subscriptions at once, and of requests in all; more are
// granted as they are used.
func TestSubscriptionsAreBounded(t *testing.T) {
	t.Parallel()
	p := open(t, setup)
	p.hear(t, wire.ServerSetup)
	var subs []*session.Subscription
	for id := range uint64(16) {
		p.say(t, subscribe(2*id))
		subs = append(subs, <-p.subs)
		p.hear(t, wire.SubscribeOK)
	}
	p.say(t, subscribe(32))
	if refused, err := wire.ParseRefusal(p.hear(t, wire.SubscribeError).Body); err != nil || refused.ID != 32 {
		t.Errorf("%+v, %v", refused, err)
	}
	p.say(t, wire.Number(wire.Unsubscribe, 4).Append(nil))
	<-subs[2].Context().Done()
	p.say(t, subscribe(34))
	subs = append(subs, <-p.subs)
	p.hear(t, wire.SubscribeOK)
	if subs[0].Context().Err() != nil {
		t.Error("another's subscription has ended")
	}
	p.say(t, wire.Number(wire.Fetch, 66).Append(nil)) // the window is half used
	if n, err := wire.ParseNumber(p.hear(t, wire.MaxRequestID).Body); err != nil || n != 256 {
		t.Errorf("%d requests are granted, %v", n, err)
	}
	p.hear(t, wire.FetchError)
	_ = p.conn.CloseWithError(0, "")
	for _, s := range subs {
		<-s.Context().Done()
	}
	t.Log("the session has ended:", <-p.ended)
}

// What is not spoken here is refused, and the session goes on.
func TestWhatIsNotSpoken(t *testing.T) {
	t.Parallel()
	p := open(t, setup)
	p.hear(t, wire.ServerSetup)
	for i, c := range []struct{ ask, answer wire.Type }{{wire.Fetch, wire.FetchError}, {wire.Publish, wire.PublishError}, {wire.TrackStatus, wire.TrackStatusError}} {
		p.say(t, wire.Number(c.ask, uint64(2*i)).Append(nil))
		if refused, err := wire.ParseRefusal(p.hear(t, c.answer).Body); err != nil || refused.Code != wire.RequestNotSupported {
			t.Errorf("%+v, %v", refused, err)
		}
	}
	still := wire.Request{ID: 6, Name: "video", Filter: wire.LargestObject} // without objects
	p.say(t, still.Message().Append(nil))
	if refused, err := wire.ParseRefusal(p.hear(t, wire.SubscribeError).Body); err != nil || refused.Code != wire.RequestNotSupported {
		t.Errorf("%+v, %v", refused, err)
	}
	p.say(t, wire.Announcement{ID: 8}.Message(wire.SubscribeNamespace).Append(nil))
	p.hear(t, wire.SubscribeNamespaceOK)
	p.hear(t, wire.PublishNamespace)
}
