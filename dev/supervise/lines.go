package supervise

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// maxLine bounds a line; a longer one is broken.
const maxLine = 16 << 10

// lineBuffer cuts a stream into lines.
type lineBuffer struct{ partial []byte }

// write calls emit with each full line, without its end. emit must not keep it.
func (b *lineBuffer) write(p []byte, emit func(line []byte)) {
	rest := append(b.partial, p...)
	for {
		line, after, found := bytes.Cut(rest, []byte("\n"))
		if !found {
			if len(rest) < maxLine {
				break
			}
			line, after = rest[:maxLine], rest[maxLine:]
		}
		emit(bytes.TrimRight(line, "\r"))
		rest = after
	}
	b.partial = append(b.partial[:0], rest...)
}

// flush emits what has no end yet.
func (b *lineBuffer) flush(emit func(line []byte)) {
	if len(b.partial) > 0 {
		emit(b.partial)
		b.partial = nil
	}
}

// lastLine passes everything on and remembers the last line that says something.
type lastLine struct {
	next io.Writer

	mu    sync.Mutex
	lines lineBuffer
	last  string
}

func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	l.lines.write(p, l.keep)
	l.mu.Unlock()
	return l.next.Write(p)
}

func (l *lastLine) keep(line []byte) {
	if text := strings.TrimSpace(string(line)); text != "" {
		l.last = text
	}
}

func (l *lastLine) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines.flush(l.keep)
	return l.last
}
