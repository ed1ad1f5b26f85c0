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
	width  int // of the longest name that was there at first
}

func newTerminal(out io.Writer, color bool, parts []Part) *terminal {
	if out == nil {
		out = io.Discard
	}
	t := &terminal{out: out, prefix: map[string]string{}}
	for _, p := range parts {
		t.width = max(t.width, len(p.Name))
	}
	for _, p := range parts {
		t.add(p.Name, color)
	}
	return t
}

// add gives a part its prefix, unless it has one.
func (t *terminal) add(name string, color bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, has := t.prefix[name]; has {
		return
	}
	prefix := fmt.Sprintf("%-*s | ", t.width, name)
	if color {
		prefix = fmt.Sprintf("\x1b[%dm%-*s |\x1b[0m ", colors[len(t.prefix)%len(colors)], t.width, name)
	}
	t.prefix[name] = prefix
}

// line writes one line of a part. A terminal that has gone away is no reason to
// stop the stack.
func (t *terminal) line(part string, text []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintf(t.out, "%s%s\n", t.prefix[part], text)
}
