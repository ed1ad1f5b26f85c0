package passthrough

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// body is a request's body while it is passed on. In full duplex an answer can
// be complete before the body is, and the server takes the connection back when
// the handler returns. It then fails ("invalid concurrent Body.Read") if the
// transport still reads, and also if it finds the end of the body by itself. So
// the handler does not return before finish has seen to both.
type body struct {
	io.ReadCloser
	reading chan struct{} // holds one token while somebody reads
	over    atomic.Bool
}

func newBody(b io.ReadCloser) *body {
	return &body{ReadCloser: b, reading: make(chan struct{}, 1)}
}

// Read reads unless the body is finished.
func (b *body) Read(p []byte) (int, error) {
	b.reading <- struct{}{}
	defer func() { <-b.reading }()
	if b.over.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.ReadCloser.Read(p)
}

// What the handler spends on a body that nobody wants any more.
const (
	grace = 250 * time.Millisecond // for a read that is under way, and for the rest
	rest  = 256 << 10              // bytes, as the server itself does
)

// finish lets no read begin, waits for the one under way, and takes the rest of
// the body off the connection. If that is too slow or too much, the connection
// takes no further request.
func (b *body) finish(c *http.ResponseController) {
	b.over.Store(true)
	if c.SetReadDeadline(time.Now().Add(grace)) != nil {
		return // not a connection of ours: it does not share its reads
	}
	b.reading <- struct{}{}
	_, err := io.CopyN(io.Discard, b.ReadCloser, rest)
	<-b.reading
	if errors.Is(err, io.EOF) {
		_ = c.SetReadDeadline(time.Time{})
		return
	}
	_ = c.SetReadDeadline(time.Unix(1, 0))
}
