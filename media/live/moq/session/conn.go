// Package session speaks draft-ietf-moq-transport-14 on one connection, as server or
// client, as publisher and subscriber: it answers what is asked, within bounds, and
// hands objects on in order.
package session

import (
	"context"
	"io"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/webtransport-go"
)

// SendStream is a stream that is written.
type SendStream interface {
	io.WriteCloser
	SetWriteDeadline(time.Time) error
	// Reset gives the stream up: what was not sent is not sent any more, and a Write
	// that waits fails.
	Reset()
}

// ReceiveStream is a stream that is read.
type ReceiveStream interface {
	io.Reader
	SetReadDeadline(time.Time) error
	// Stop tells the peer that nothing more of it will be read.
	Stop()
}

// Stream is both.
type Stream interface {
	SendStream
	ReceiveStream
}

// Conn is what MoQ needs of a connection: a session of WebTransport, or QUIC itself.
type Conn interface {
	AcceptStream(context.Context) (Stream, error)
	OpenStream(context.Context) (Stream, error)
	AcceptUniStream(context.Context) (ReceiveStream, error)
	OpenUniStream(context.Context) (SendStream, error)
	// Close ends the connection; code is one of wire's Close….
	Close(code uint64, reason string)
	// Context ends with the connection.
	Context() context.Context
}

// cancelled is the code with which streams are given up (section 10.4.3).
const cancelled = 0x1

// The streams of both libraries differ in the type of their codes alone.
type (
	code          interface{ ~uint32 | ~uint64 }
	sends[C code] interface {
		CancelWrite(C)
		io.WriteCloser
		SetWriteDeadline(time.Time) error
	}
	receives[C code] interface {
		CancelRead(C)
		io.Reader
		SetReadDeadline(time.Time) error
	}
	sender[C code]   struct{ sends[C] }
	receiver[C code] struct{ receives[C] }
	streamOf[C code] struct {
		sender[C]
		receiver[C]
	}
)

func (s sender[C]) Reset()  { s.CancelWrite(cancelled) }
func (s receiver[C]) Stop() { s.CancelRead(cancelled) }

// bidirectional wraps a stream of either library.
func bidirectional[C code](s interface {
	sends[C]
	receives[C]
}, err error) (Stream, error) {
	if err != nil {
		return nil, err
	}
	return streamOf[C]{sender[C]{s}, receiver[C]{s}}, nil
}

// OverWebTransport is a session of WebTransport as a Conn.
func OverWebTransport(s *webtransport.Session) Conn { return overWebTransport{s} }

type overWebTransport struct{ *webtransport.Session }

func (c overWebTransport) AcceptStream(ctx context.Context) (Stream, error) {
	s, err := c.Session.AcceptStream(ctx)
	return bidirectional[webtransport.StreamErrorCode](s, err)
}

func (c overWebTransport) OpenStream(ctx context.Context) (Stream, error) {
	s, err := c.OpenStreamSync(ctx)
	return bidirectional[webtransport.StreamErrorCode](s, err)
}

func (c overWebTransport) AcceptUniStream(ctx context.Context) (ReceiveStream, error) {
	s, err := c.Session.AcceptUniStream(ctx)
	return receiver[webtransport.StreamErrorCode]{s}, err
}

func (c overWebTransport) OpenUniStream(ctx context.Context) (SendStream, error) {
	s, err := c.OpenUniStreamSync(ctx)
	return sender[webtransport.StreamErrorCode]{s}, err
}

func (c overWebTransport) Close(code uint64, reason string) {
	_ = c.CloseWithError(webtransport.SessionErrorCode(code), reason) // it is closed in any case
}

// OverQUIC is a connection of QUIC as a Conn.
func OverQUIC(c *quic.Conn) Conn { return overQUIC{c} }

type overQUIC struct{ *quic.Conn }

func (c overQUIC) AcceptStream(ctx context.Context) (Stream, error) {
	s, err := c.Conn.AcceptStream(ctx)
	return bidirectional[quic.StreamErrorCode](s, err)
}

func (c overQUIC) OpenStream(ctx context.Context) (Stream, error) {
	s, err := c.OpenStreamSync(ctx)
	return bidirectional[quic.StreamErrorCode](s, err)
}

func (c overQUIC) AcceptUniStream(ctx context.Context) (ReceiveStream, error) {
	s, err := c.Conn.AcceptUniStream(ctx)
	return receiver[quic.StreamErrorCode]{s}, err
}

func (c overQUIC) OpenUniStream(ctx context.Context) (SendStream, error) {
	s, err := c.OpenUniStreamSync(ctx)
	return sender[quic.StreamErrorCode]{s}, err
}

func (c overQUIC) Close(code uint64, reason string) {
	_ = c.CloseWithError(quic.ApplicationErrorCode(code), reason) // it is closed in any case
}
