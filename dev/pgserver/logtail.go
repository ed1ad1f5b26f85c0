package pgserver

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// maxLogLine bounds what is kept of one line of the server's log.
const maxLogLine = 8 << 10

// logTail passes the server's log on and listens for the two things that
// matter: that it is ready, and why it gave up.
type logTail struct {
	ready chan struct{}

	mu      sync.Mutex
	next    io.Writer
	partial []byte
	isReady bool
	fatal   string
	hint    string
	last    string
}

func newLogTail(next io.Writer) *logTail {
	if next == nil {
		next = io.Discard
	}
	return &logTail{ready: make(chan struct{}), next: next}
}

// Write never fails: a log that cannot be kept must not stop the server.
func (l *logTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.next.Write(p)
	rest := append(l.partial, p...)
	for {
		line, after, found := bytes.Cut(rest, []byte("\n"))
		if !found && len(rest) < maxLogLine {
			l.partial = append(l.partial[:0], rest...)
			return len(p), nil
		}
		l.line(strings.TrimSpace(string(line)))
		rest = after
	}
}

func (l *logTail) line(text string) {
	switch {
	case text == "":
		return
	case strings.Contains(text, "database system is ready to accept "): // "connections", or "read-only connections"
		if !l.isReady {
			l.isReady = true
			close(l.ready)
		}
	case strings.Contains(text, "FATAL:"), strings.Contains(text, "PANIC:"):
		l.fatal, l.hint = text, ""
	case strings.Contains(text, "HINT:"):
		l.hint = text
	}
	l.last = text
}

// cause is the last FATAL or PANIC line with its hint, else the last line.
func (l *logTail) cause() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.fatal != "" && l.hint != "":
		return l.fatal + " (" + l.hint + ")"
	case l.fatal != "":
		return l.fatal
	case l.last != "":
		return l.last
	}
	return "its log is empty"
}
