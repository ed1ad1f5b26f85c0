package supervise

import (
	"fmt"
	"io"
	"sync"
)

// colors are the terminal's, one for each part in turn: cyan, yellow, green,
// magenta, blue, and their bright kin. Red is left for what it means.
var colors = []int{36, 33, 32, 35, 34, 96, 93, 92, 95, 94}

// terminal writes whole lines, each with the aligned name of its part.
type terminal struct {
	mu     sync.Mutex
	out    io.Writer
	prefix map[string]string
}

func newTerminal(out io.Writer, color bool, parts []Part) *terminal {
	if out == nil {
		out = io.Discard
	}
	width := 0
	for _, p := range parts {
		width = max(width, len(p.Name))
	}
	t := &terminal{out: out, prefix: map[string]string{}}
	for i, p := range parts {
		t.prefix[p.Name] = fmt.Sprintf("%-*s | ", width, p.Name)
		if color {
			t.prefix[p.Name] = fmt.Sprintf("\x1b[%dm%-*s |\x1b[0m ", colors[i%len(colors)], width, p.Name)
		}
	}
	return t
}

// line writes one line of a part. A terminal that has gone away is no reason to
// stop the stack.
func (t *terminal) line(part string, text []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintf(t.out, "%s%s\n", t.prefix[part], text)
}
