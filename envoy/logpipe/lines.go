package logpipe

import (
	"bytes"
	"io"
)

// maxLine bounds what waits for its end; a longer line is broken.
const maxLine = 64 << 10

// Lines passes whole lines on, so that those of several processes do not mix. One
// process writes to it.
type Lines struct {
	To      io.Writer
	partial []byte
}

// Write returns To's error.
func (l *Lines) Write(b []byte) (int, error) {
	end := bytes.LastIndexByte(b, '\n') + 1
	whole := b[:end]
	if len(l.partial) > 0 && end > 0 {
		whole = append(l.partial, whole...)
		l.partial = l.partial[:0]
	}
	if len(whole) > 0 {
		if _, err := l.To.Write(whole); err != nil {
			return 0, err
		}
	}
	l.partial = append(l.partial, b[end:]...)
	if len(l.partial) < maxLine {
		return len(b), nil
	}
	broken := append(l.partial, '\n')
	l.partial = l.partial[:0]
	_, err := l.To.Write(broken)
	return len(b), err
}
