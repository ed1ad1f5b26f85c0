package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"sluice.dev/sluice/platform/limits/growth"
)

// read returns the events of a stream, each as name|data.
func read(r io.Reader) ([]string, error) {
	var events []string
	for in := NewReader(r, 1000); ; {
		e, err := in.Next()
		if err != nil {
			return events, err
		}
		events = append(events, e.Name+"|"+string(e.Data))
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"LF":                   {"data: a\n\ndata: b\n\n", "|a |b"},
		"CRLF":                 {"data: a\r\n\r\ndata: b\r\n\r\n", "|a |b"},
		"CR":                   {"data: a\r\rdata: b\r\r", "|a |b"},
		"mixed ends":           {"data: a\r\n\ndata: b\n\r\n", "|a |b"},
		"no space":             {"data:a\n\n", "|a"},
		"one space goes":       {"data:  a\n\n", "| a"},
		"several lines":        {"data: a\ndata: b\ndata\n\n", "|a\nb\n"},
		"named":                {"event: error\ndata: a\n\ndata: b\n\n", "error|a |b"},
		"a name without data":  {"event: x\n\ndata: a\n\n", "|a"},
		"comments":             {": hi\n\n:\ndata: a\n: there\n\n", "|a"},
		"other fields":         {"id: 1\nretry: 5\ndata: a\nfoo\n\n", "|a"},
		"byte order mark":      {"\xef\xbb\xbfdata: a\n\n", "|a"},
		"empty data":           {"data\n\n", "|"},
		"cut behind a line":    {"data: a\n", "|a"},
		"cut inside of a line": {"data: a\n\ndata: b", "|a |b"},
		"empty":                {"", ""},
		"a colon in the data":  {"data: {\"a\":1}\n\n", `|{"a":1}`},
	} {
		for way, r := range map[string]io.Reader{
			"at once": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
			"with EOF at the last read": iotest.DataErrReader(strings.NewReader(c.in)),
		} {
			events, err := read(r)
			if got := strings.Join(events, " "); got != c.want || !errors.Is(err, io.EOF) {
				t.Errorf("%s, %s: %q %v, want %q", name, way, got, err, c.want)
			}
		}
	}
}

func TestReaderPassesErrorsOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	events, err := read(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)))
	if strings.Join(events, " ") != "|a" || !errors.Is(err, broken) {
		t.Errorf("%q %v", events, err)
	}
}

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"one long line": "data: " + strings.Repeat("x", 5000),
		"many lines":    strings.Repeat("data: 0123456789\n", 500),
	} {
		if _, err := read(strings.NewReader(in)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	r := NewReader(strings.NewReader("data: a\n\ndata: b\n\ndata: c"), 0)
	for i, want := range []bool{true, false} {
		if _, err := r.Next(); err != nil || r.Ready() != want {
			t.Errorf("behind event %d: ready %v, %v", i, r.Ready(), err)
		}
	}
}

// What a reader holds is bounded by the largest event, however long the stream.
func TestReadingIsLinear(t *testing.T) {
	for name, line := range map[string]string{
		"short events": "data: x\n\n", "events that end with CR": "data: x\r\r", "comments": ": x\n", "names": "event: abc\n", "no data": "data\n", "blanks": "\n", "no end of line": "x",
	} {
		for _, n := range []int{64 << 10, 256 << 10} {
			in := strings.Repeat(line, n/len(line))
			const most = 16 << 10
			growth.Linear(t, n, 2, 32*most, func() { // names are copied
				for r := NewReader(strings.NewReader(in), most); ; {
					if _, err := r.Next(); err != nil {
						if !errors.Is(err, io.EOF) && !errors.Is(err, ErrTooLarge) {
							t.Errorf("%s: %v", name, err)
						}
						return
					}
					r.Ready()
				}
			})
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\nevent: b\ndata: c\n\n"), []byte("x\ny"))
	f.Add([]byte("\xef\xbb\xbf:\r\rdata\rdata:\n\n"), []byte(""))
	f.Fuzz(func(t *testing.T, stream, data []byte) {
		whole, err1 := read(bytes.NewReader(stream))
		slow, err2 := read(iotest.OneByteReader(bytes.NewReader(stream)))
		if strings.Join(whole, "\x00") != strings.Join(slow, "\x00") || !errors.Is(err1, err2) {
			t.Fatalf("%q: %q %v at once, %q %v byte by byte", stream, whole, err1, slow, err2)
		}
		growth.Linear(t, len(stream), 8, 64<<10, func() {
			for r := NewReader(bytes.NewReader(stream), 0); ; {
				if _, err := r.Next(); err != nil {
					return
				}
			}
		})
		if bytes.ContainsRune(data, '\r') || len(data) > 400 {
			return
		}
		back, err := read(bytes.NewReader(AppendData(nil, data)))
		if !errors.Is(err, io.EOF) || len(back) != 1 || back[0] != "|"+string(data) {
			t.Fatalf("%q came back as %q, %v", data, back, err)
		}
	})
}
