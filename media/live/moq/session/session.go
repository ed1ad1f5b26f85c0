package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/media/live/moq/wire"
)

// Bounds of a session.
const (
	// patience is how long setup, a write to the control stream, and a group that is
	// behind may take.
	patience = 5 * time.Second
	// window is how many request ids are granted beyond the last one that was used.
	window = 128
	// maxRequests is how many requests a peer may make in a session, in ids.
	maxRequests = 16 << 10
	// maxSubscriptions is how many of a peer's subscriptions there may be at once.
	maxSubscriptions = 16
)

// Handler decides what the peer of a session may do. Its methods are called one
// after another, and must not wait for the peer.
type Handler interface {
	// Subscribed is called for each SUBSCRIBE. It, or somebody later, calls Accept or
	// Reject once.
	Subscribed(*Subscription)
	// Announced says whether the peer may publish below ns.
	Announced(ns wire.Namespace) error
	// Namespaces are those that the peer may subscribe to below prefix.
	Namespaces(prefix wire.Namespace) []wire.Namespace
}

// Session is one session of MoQ. Its methods may be called at once.
type Session struct {
	conn    Conn
	handler Handler
	control Stream
	in      *bufio.Reader

	writing sync.Mutex // the control stream

	mu      sync.Mutex
	next    uint64 // id of our next request
	allowed uint64 // our ids must be below it
	peer    uint64 // the peer's next id, at the least
	granted uint64
	subs    map[uint64]*Subscription // of the peer, by id
	asked   map[uint64]chan reply    // requests of ours that wait
	tracks  map[uint64]*Track        // ours, by alias
	byID    map[uint64]*Track
	changed chan struct{} // closed when tracks changes
}

// reply is the answer to a request.
type reply struct {
	ok  wire.Accepted
	err error
}

// newSession is a session on an open control stream.
func newSession(conn Conn, control Stream) *Session {
	return &Session{conn: conn, control: control, in: bufio.NewReader(control), granted: window, changed: make(chan struct{}),
		subs: map[uint64]*Subscription{}, asked: map[uint64]chan reply{}, tracks: map[uint64]*Track{}, byID: map[uint64]*Track{}}
}

// Accept begins a session as its server. admit, which gets the client's setup, says
// who decides about the rest, or why there is no session. Every failure closes conn.
func Accept(ctx context.Context, conn Conn, admit func(wire.Setup) (Handler, error)) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	control, err := conn.AcceptStream(ctx)
	if err != nil {
		conn.Close(wire.CloseControlLate, "no control stream")
		return nil, err
	}
	s := newSession(conn, control)
	setup, err := s.readSetup(wire.ClientSetup)
	switch {
	case err != nil:
		conn.Close(wire.CloseProtocol, "no CLIENT_SETUP")
		return nil, err
	case !slices.Contains(setup.Versions, wire.Version):
		conn.Close(wire.CloseVersionFailed, "only "+wire.Draft+" is spoken here")
		return nil, fmt.Errorf("client offers versions %x", setup.Versions)
	}
	s.next, s.peer, s.allowed = 1, 0, setup.MaxRequestID
	if s.handler, err = admit(setup); err != nil {
		conn.Close(wire.CloseUnauthorized, err.Error())
		return nil, err
	}
	return s, s.write(wire.Setup{Versions: []uint64{wire.Version}, MaxRequestID: s.granted}.Message(wire.ServerSetup))
}

// Connect begins a session as its client. path is sent on QUIC itself; WebTransport
// has it in its URL.
func Connect(ctx context.Context, conn Conn, path string, h Handler) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	control, err := conn.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	s := newSession(conn, control)
	s.handler = h
	if err := s.write(wire.Setup{Versions: []uint64{wire.Version}, Path: path, MaxRequestID: s.granted}.Message(wire.ClientSetup)); err != nil {
		return nil, err
	}
	setup, err := s.readSetup(wire.ServerSetup)
	if err == nil && !slices.Contains(setup.Versions, wire.Version) {
		err = fmt.Errorf("server speaks %x", setup.Versions)
	}
	s.next, s.peer, s.allowed = 0, 1, setup.MaxRequestID
	return s, err
}

// readSetup reads the first message, which must be of type t.
func (s *Session) readSetup(t wire.Type) (wire.Setup, error) {
	_ = s.control.SetReadDeadline(time.Now().Add(patience)) // fails on a closed stream, as the read does
	m, err := wire.ReadMessage(s.in)
	if err == nil && m.Type != t {
		err = fmt.Errorf("%w: type %#x before the setup", wire.ErrMalformed, m.Type)
	}
	if err != nil {
		return wire.Setup{}, err
	}
	_ = s.control.SetReadDeadline(time.Time{})
	return wire.ParseSetup(m)
}

// Run serves the session until it ends or ctx does, and closes it. It returns why.
func (s *Session) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.Close(wire.CloseNoError, "") })
	defer stop()
	go s.receive(ctx)
	defer s.end()
	for {
		m, err := wire.ReadMessage(s.in)
		if err == nil {
			err = s.take(ctx, m)
		}
		if err == nil {
			continue
		}
		switch {
		case errors.Is(err, errTooMany):
			s.Close(wire.CloseTooMany, err.Error())
		case errors.Is(err, wire.ErrMalformed):
			s.Close(wire.CloseProtocol, err.Error())
		default:
			s.Close(wire.CloseNoError, "")
		}
		return err
	}
}

// Close ends the session; code is one of wire's Close….
func (s *Session) Close(code uint64, reason string) { s.conn.Close(code, reason) }

// end lets go of everybody who waits for the peer.
func (s *Session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.subs {
		sub.cancel()
	}
	for id, waiting := range s.asked {
		waiting <- reply{err: errGone}
		delete(s.asked, id)
	}
	for _, t := range s.byID {
		t.finish()
	}
}

// errGone says that a session has ended.
var errGone = errors.New("the session has ended")

// errTooMany says that the peer asks for more than it may.
var errTooMany = errors.New("more requests than were granted")

// write sends one control message. A peer that does not read for as long as
// patience loses the session.
func (s *Session) write(m wire.Message) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.control.SetWriteDeadline(time.Now().Add(patience)) // fails on a closed stream, as the write does
	_, err := s.control.Write(m.Append(nil))
	return err
}

// admit checks the id of a request by the peer, and grants more when few are left.
func (s *Session) admit(id uint64) error {
	s.mu.Lock()
	if id >= s.granted {
		s.mu.Unlock()
		return errTooMany
	}
	if id < s.peer || id%2 != s.peer%2 {
		s.mu.Unlock()
		return fmt.Errorf("%w: request %d after %d", wire.ErrMalformed, id, s.peer)
	}
	s.peer = id + 2
	more := s.granted-s.peer < window/2 && s.granted < maxRequests
	if more {
		s.granted += window
	}
	granted := s.granted
	s.mu.Unlock()
	if !more {
		return nil
	}
	return s.write(wire.Number(wire.MaxRequestID, granted))
}
