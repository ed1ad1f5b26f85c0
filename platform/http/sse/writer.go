package sse

import (
	"bytes"
	"errors"
	"net/http"
	"sync"
	"time"
)

// ContentType is the media type of an event stream.
const ContentType = "text/event-stream"

var errClosed = errors.New("the response is over")

// Writer writes events to a response. Its methods may be called from several
// goroutines.
type Writer struct {
	// Timeout bounds the time that the client may take to accept a write; 0:
	// no bound.
	Timeout time.Duration

	mu    sync.Mutex
	w     http.ResponseWriter
	c     *http.ResponseController
	buf   []byte
	begun bool
	until time.Time // present write deadline
	err   error     // first failure; the client is then gone
}

// NewWriter returns a writer to w. The header is sent with the first event.
func NewWriter(w http.ResponseWriter) *Writer {
	return &Writer{w: w, c: http.NewResponseController(w)}
}

// Event appends an event with data to what is to be sent, and sends it all
// unless more is true: then the next event will follow at once. It returns the
// first error that writing to the client ever gave.
func (w *Writer) Event(data []byte, more bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = AppendData(w.buf, data)
	if more && len(w.buf) < 16<<10 {
		return w.err
	}
	return w.flush()
}

// KeepAlive sends a comment, unless no event was sent yet: there are clients
// that take a comment before the first event for the end.
func (w *Writer) KeepAlive() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun || w.err != nil {
		return w.err
	}
	w.buf = append(w.buf, ": keep-alive\n\n"...)
	return w.flush()
}

// Close makes every later call fail, so that nothing is written once the
// handler has returned.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = errClosed
	}
}

// Begun reports whether the header was sent, so that no other answer is
// possible any more.
func (w *Writer) Begun() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begun
}

// flush sends what has gathered, the header before it the first time. w.mu must
// be held.
func (w *Writer) flush() error {
	if w.err != nil {
		return w.err
	}
	if !w.begun {
		w.begun = true
		h := w.w.Header()
		h.Set("Content-Type", ContentType)
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("X-Accel-Buffering", "no") // for proxies that buffer unless told
		w.w.WriteHeader(http.StatusOK)
	}
	w.deadline()
	_, w.err = w.w.Write(w.buf)
	w.buf = w.buf[:0]
	if w.err == nil {
		w.err = w.c.Flush()
	}
	return w.err
}

// deadline moves the write deadline when a tenth of it has passed: setting it
// for every event would cost more than the event.
func (w *Writer) deadline() {
	if w.Timeout <= 0 {
		return
	}
	now := time.Now()
	if w.until.Sub(now) > w.Timeout*9/10 {
		return
	}
	w.until = now.Add(w.Timeout)
	_ = w.c.SetWriteDeadline(w.until) // a writer without deadlines works without
}

// AppendData appends to dst an event that has data, one line for each of its.
func AppendData(dst, data []byte) []byte {
	for more := true; more; {
		var line []byte
		line, data, more = bytes.Cut(data, []byte{'\n'})
		dst = append(dst, "data: "...)
		dst = append(dst, line...)
		dst = append(dst, '\n')
	}
	return append(dst, '\n')
}
