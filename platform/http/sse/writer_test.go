package sse

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestWriter(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	w := NewWriter(rec)
	if err := w.KeepAlive(); err != nil || w.Begun() {
		t.Fatalf("a comment went out before the first event: %v", err)
	}
	if err := w.Event([]byte("a"), true); err != nil || rec.Flushed {
		t.Fatalf("sent although more follows: %v", err)
	}
	if err := w.Event([]byte("b\nc"), false); err != nil || !rec.Flushed {
		t.Fatalf("not sent: %v", err)
	}
	if err := w.KeepAlive(); err != nil {
		t.Fatal(err)
	}
	if got, want := rec.Body.String(), "data: a\n\ndata: b\ndata: c\n\n: keep-alive\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if ct := rec.Header().Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("content type %q", ct)
	}
}

func TestWriterBoundsWhatWaits(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	w := NewWriter(rec)
	if err := w.Event(bytes.Repeat([]byte{'x'}, 20<<10), true); err != nil || !rec.Flushed {
		t.Errorf("a large event waited: %v", err)
	}
}

// gone is a client that has left.
type gone struct{ http.ResponseWriter }

var errGone = errors.New("gone")

func (gone) Write([]byte) (int, error)        { return 0, errGone }
func (gone) SetWriteDeadline(time.Time) error { return nil }
func (g gone) Unwrap() http.ResponseWriter    { return g.ResponseWriter }

func TestWriterRemembersThatTheClientIsGone(t *testing.T) {
	t.Parallel()
	w := NewWriter(gone{httptest.NewRecorder()})
	w.Timeout = time.Minute
	for range 2 {
		if err := w.Event([]byte("a"), false); !errors.Is(err, errGone) {
			t.Errorf("got %v", err)
		}
	}
	if err := w.KeepAlive(); !errors.Is(err, errGone) {
		t.Errorf("keep-alive: %v", err)
	}
}

func TestNothingIsWrittenOnceClosed(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	w := NewWriter(rec)
	if err := w.Event([]byte("a"), false); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if w.Event([]byte("b"), false) == nil || w.KeepAlive() == nil || rec.Body.String() != "data: a\n\n" {
		t.Errorf("written: %q", rec.Body)
	}
}

func BenchmarkRelay(b *testing.B) {
	in := strings.Repeat("data: "+strings.Repeat("x", 200)+"\n\n", 100)
	b.ReportAllocs()
	for b.Loop() {
		r, w := NewReader(strings.NewReader(in), 0), NewWriter(httptest.NewRecorder())
		for e, err := r.Next(); err == nil; e, err = r.Next() {
			_ = w.Event(e.Data, r.Ready())
		}
	}
}
