package sluice

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// maxEvent bounds one event of a stream, in bytes.
const maxEvent = 4 << 20

// ServerEvent is one server-sent event.
type ServerEvent struct {
	Name string // empty where the stream names none
	Data string // the data lines, joined by newlines
}

// ServerEvents reads server-sent events (WHATWG HTML, 9.2) as they come; the error with
// which reading ends, if that is not the end of the stream, is the last. It holds one event of at most 4 MiB.
func ServerEvents(body io.Reader) iter.Seq2[ServerEvent, error] {
	return func(yield func(ServerEvent, error) bool) {
		lines := bufio.NewScanner(body)
		lines.Buffer(make([]byte, 0, 4096), maxEvent)
		lines.Split(sseLines())
		var name string
		var data []string
		size := 0
		for lines.Scan() {
			line := lines.Bytes()
			if len(line) == 0 {
				if data != nil && !yield(ServerEvent{name, joined(data)}, nil) {
					return
				}
				name, data, size = "", nil, 0
				continue
			}
			field, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(field) {
			case "event":
				name = string(value)
			case "data":
				if size += len(value) + 1; size > maxEvent {
					yield(ServerEvent{}, bufio.ErrTooLong)
					return
				}
				data = append(data, string(value))
			}
		}
		if err := lines.Err(); err != nil {
			yield(ServerEvent{}, err)
		}
	}
}

func joined(lines []string) string {
	var b bytes.Buffer
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l)
	}
	return b.String()
}

// sseLines splits at LF, CR and CRLF. A CR ends its line at once: the LF behind it, if it
// comes, is dropped then.
func sseLines() bufio.SplitFunc {
	first, cr := true, false
	return func(data []byte, atEOF bool) (advance int, token []byte, err error) {
		if first && len(data) < 3 && !atEOF && bytes.HasPrefix([]byte("\xef\xbb\xbf"), data) {
			return 0, nil, nil
		}
		skip := 0
		if first && bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
			skip = 3
		}
		if cr && len(data) > 0 && data[0] == '\n' {
			skip = 1
		}
		i := bytes.IndexAny(data[skip:], "\r\n")
		if i < 0 {
			if atEOF && len(data) > skip {
				return len(data), data[skip:], nil
			}
			return 0, nil, nil // an event that the end cuts off does not count
		}
		first, cr = false, data[skip+i] == '\r'
		return skip + i + 1, data[skip : skip+i : skip+i], nil
	}
}
