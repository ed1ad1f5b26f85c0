package requestlog

import (
	"bytes"
	"io"

	"sluice.dev/sluice/filters/edgeapi"
)

// Writer takes what Envoy writes, some whole lines at a time, prints of them what
// people asked for, and records the rest.
type Writer struct {
	Print  io.Writer // must not block
	Record *Recorder // nil: nothing is recorded
}

// Write returns Print's error. What it prints is in the order in which it came.
func (w *Writer) Write(b []byte) (int, error) {
	if !bytes.Contains(b, []byte(markBegin)) {
		return w.Print.Write(b)
	}
	out := make([]byte, 0, len(b))
	for line := range bytes.Lines(b) {
		m, rest, ok := marked(line)
		if !ok {
			out = append(out, line...)
			continue
		}
		bad := failed(rest)
		if m.print == edgeapi.MarkAll[0] || bad && m.print == edgeapi.MarkSome[0] {
			out = append(append(out, '{'), rest...)
		}
		if m.record != edgeapi.MarkNone[0] && w.Record != nil {
			w.Record.add(m, rest, bad)
		}
	}
	if len(out) == 0 {
		return len(b), nil
	}
	if _, err := w.Print.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
