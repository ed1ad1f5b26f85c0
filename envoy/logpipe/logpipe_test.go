package logpipe

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds a wait for what must happen.
const patience = 10 * time.Second

// stalled is a reader that takes nothing until it is told to go on.
type stalled struct {
	goOn chan struct{}
	met  chan struct{} // closed at the first write
	once sync.Once

	mu   sync.Mutex
	text bytes.Buffer
}

func newStalled() *stalled {
	return &stalled{goOn: make(chan struct{}), met: make(chan struct{})}
}

func (s *stalled) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.met) })
	<-s.goOn
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *stalled) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(strings.TrimSuffix(s.text.String(), "\n"), "\n")
}

func TestEverythingArrivesInOrder(t *testing.T) {
	t.Parallel()
	out := newStalled()
	close(out.goOn)
	p := New(Config{Out: out, Dropped: func(n int) { t.Errorf("%d lines dropped", n) }})
	var want []string
	for n := range 1000 {
		want = append(want, fmt.Sprint("line ", n))
		fmt.Fprintf(p, "line %d\n", n)
	}
	p.Close(patience)
	if got := out.lines(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d lines, want %d: %q…", len(got), len(want), got[:min(3, len(got))])
	}
}

// A reader that hangs makes nobody wait, and costs no more than the room. When it
// goes on, it gets what was kept, whole, and is told what was not.
func TestAReaderThatHangs(t *testing.T) {
	t.Parallel()
	out := newStalled()
	told := make(chan int, 2)
	var p *Pipe
	p = New(Config{Out: out, Capacity: 100, Dropped: func(n int) {
		fmt.Fprintf(p, "%d dropped\n", n)
		told <- n
	}})
	fmt.Fprintln(p, "in the reader's hands")
	<-out.met
	for n := range 50 {
		fmt.Fprintf(p, "line %04d\n", n) // 10 bytes
	}
	if got := p.Dropped(); got != 40 {
		t.Fatalf("%d lines dropped, want 40", got)
	}
	close(out.goOn)
	if got := <-told; got != 40 {
		t.Fatalf("told of %d lines, want 40", got)
	}
	p.Close(patience)
	got := out.lines()
	if len(got) != 12 || got[0] != "in the reader's hands" || got[10] != "line 0009" || got[11] != "40 dropped" {
		t.Errorf("the reader got %q", got)
	}
}

func TestCloseWaitsOnlySoLong(t *testing.T) {
	t.Parallel()
	out := newStalled()
	p := New(Config{Out: out})
	fmt.Fprintln(p, "nobody takes it")
	<-out.met
	p.Close(time.Millisecond)
	fmt.Fprintln(p, "too late")
	if p.Dropped() != 1 {
		t.Errorf("%d lines dropped after the end, want 1", p.Dropped())
	}
	close(out.goOn)
}

// A pipe that is closed while lines are missing comes to its end: that they are
// would itself be a line too late.
func TestCloseAfterLinesWereDropped(t *testing.T) {
	t.Parallel()
	out := newStalled()
	var p *Pipe
	p = New(Config{Out: out, Capacity: 10, Dropped: func(n int) { fmt.Fprintf(p, "%d dropped\n", n) }})
	fmt.Fprintln(p, "taken")
	<-out.met
	fmt.Fprintln(p, "no room for this")
	p.Close(time.Millisecond)
	close(out.goOn)
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatal("it writes for ever")
	}
}

// What two processes write piece by piece stays whole line by line.
func TestLinesStayWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		pieces []string
		want   []string
	}{
		{"one line", []string{"a\n"}, []string{"a\n"}},
		{"two in one piece", []string{"a\nb\n"}, []string{"a\nb\n"}},
		{"in pieces", []string{"a", "b", "c\nd", "\n"}, []string{"abc\n", "d\n"}},
		{"an end alone", []string{"\n"}, []string{"\n"}},
		{"no end", []string{"a"}, nil},
		{"longer than any line", []string{strings.Repeat("x", maxLine), "y\n"}, []string{strings.Repeat("x", maxLine) + "\n", "y\n"}},
	} {
		var got []string
		l := &Lines{To: writes(func(b []byte) { got = append(got, string(b)) })}
		for _, piece := range c.pieces {
			if n, err := io.WriteString(l, piece); n != len(piece) || err != nil {
				t.Fatalf("%s: %d %v", c.name, n, err)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// writes is a writer that shows each write.
type writes func([]byte)

func (w writes) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}
