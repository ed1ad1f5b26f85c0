// Package sse reads and writes server-sent events (WHATWG HTML, 9.2), one at a
// time and without waiting for more than one.
package sse

import (
	"bytes"
	"errors"
	"io"
)

// DefaultMaxEvent bounds one event in bytes.
const DefaultMaxEvent = 4 << 20

// ErrTooLarge says that an event is larger than the reader allows.
var ErrTooLarge = errors.New("server-sent event is too large")

// Event is one event. Its parts are valid until the next call of Next.
type Event struct {
	Name string // empty where the stream names none
	Data []byte // the data lines, joined by newlines
}

// Reader reads events from a stream. It looks at each byte a few times, however
// the bytes arrive and whatever the lines are, and holds at most some four times
// the largest event that it allows; lines that say nothing cost no memory.
type Reader struct {
	r      io.Reader
	max    int
	buf    []byte // buf[at:] is not read yet
	at     int
	data   []byte
	some   bool // data has a line
	name   string
	skipLF bool // the last line ended with CR: an LF now belongs to it
	begun  bool
	err    error
}

// NewReader reads events of at most maxEvent bytes from r; 0: DefaultMaxEvent.
func NewReader(r io.Reader, maxEvent int) *Reader {
	if maxEvent <= 0 {
		maxEvent = DefaultMaxEvent
	}
	return &Reader{r: r, max: maxEvent, buf: make([]byte, 0, 4096)}
}

// Next returns the next event that has data. At the end of the stream it
// returns io.EOF; an event that the end cuts off behind a whole line of data
// counts, as some servers do not end the last one.
func (r *Reader) Next() (Event, error) {
	r.data, r.some, r.name = r.data[:0], false, ""
	for {
		line, err := r.line()
		if err != nil {
			if errors.Is(err, io.EOF) && r.some {
				return Event{r.name, r.data}, nil
			}
			return Event{}, err
		}
		if len(line) > 0 {
			r.field(line)
			continue
		}
		if r.some {
			return Event{r.name, r.data}, nil
		}
		r.name = ""
	}
}

// ahead is how far Ready looks: it is asked behind each event.
const ahead = 4 << 10

// Ready reports whether a whole event seems to be read already, so that Next
// would not wait for the stream. It costs constant time.
func (r *Reader) Ready() bool {
	rest := r.buf[r.at:min(len(r.buf), r.at+ahead)]
	return bytes.Contains(rest, []byte("\n\n")) || bytes.Contains(rest, []byte("\r\n\r\n"))
}

// field takes in one line; comments and fields that do not matter here are
// dropped.
func (r *Reader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "data":
		if r.some {
			r.data = append(r.data, '\n')
		}
		r.data = append(r.data, value...)
		r.some = true
	case "event":
		r.name = string(value)
	}
}

// line returns the next line without its end, which is LF, CR or CRLF.
func (r *Reader) line() ([]byte, error) {
	for scanned := 0; ; {
		r.trim()
		rest := r.buf[r.at:]
		// What was looked at already is not looked at again when more has come.
		i := bytes.IndexAny(rest[min(scanned, len(rest)):], "\r\n")
		if i >= 0 && scanned+i+len(r.data) <= r.max {
			i += scanned
			r.skipLF = rest[i] == '\r'
			r.at += i + 1
			return rest[:i], nil
		}
		scanned = len(rest)
		if i >= 0 || len(rest)+len(r.data) > r.max {
			return nil, ErrTooLarge
		}
		if r.err != nil {
			return r.last(rest)
		}
		r.fill()
	}
}

// last returns what stands behind the last line's end, once the stream is over.
func (r *Reader) last(rest []byte) ([]byte, error) {
	if len(rest) == 0 || !errors.Is(r.err, io.EOF) {
		return nil, r.err
	}
	r.at = len(r.buf)
	return rest, nil
}

// trim drops the byte order mark, and the LF of a CRLF.
func (r *Reader) trim() {
	if !r.begun && (len(r.buf) >= 3 || r.err != nil) {
		r.begun = true
		if bytes.HasPrefix(r.buf, []byte("\xef\xbb\xbf")) {
			r.at = 3
		}
	}
	if r.skipLF && r.at < len(r.buf) {
		if r.buf[r.at] == '\n' {
			r.at++
		}
		r.skipLF = false
	}
}

// fill reads more, behind what is not read yet, and makes room first.
func (r *Reader) fill() {
	if r.at > 0 {
		r.buf = r.buf[:copy(r.buf, r.buf[r.at:])]
		r.at = 0
	}
	if len(r.buf) == cap(r.buf) {
		r.buf = append(make([]byte, 0, 2*cap(r.buf)), r.buf...)
	}
	n, err := r.r.Read(r.buf[len(r.buf):cap(r.buf)])
	r.buf = r.buf[:len(r.buf)+n]
	r.err = err
}
