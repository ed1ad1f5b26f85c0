// Package logpipe buffers log lines up to a bound, so that whoever logs never waits
// for whoever reads.
//
// Envoy queues its access log in memory for as long as nobody reads it: 360 bytes
// for each request, without a bound. A collector that hangs would so fill the
// memory of an edge, and a client could help by requests that fail. An agent whose
// own log blocks would stop feeding keys to Envoy. So an agent reads all that Envoy
// logs at once, and both logs wait here, up to a bound. What comes beyond it is
// dropped, counted, and told when there is room again.
package logpipe

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// defaultCapacity is some six thousand lines of an access log.
const defaultCapacity = 2 << 20

// Config says where lines go.
type Config struct {
	// Out gets the lines in their order, and may block.
	Out io.Writer
	// Capacity is how many bytes may wait; as many again are being written. 0: 2 MiB.
	Capacity int
	// Dropped is told, as soon as there is room again, how many lines were dropped
	// since it was last told. It may write to the pipe. Nil: nobody is told, as
	// after Close.
	Dropped func(lines int)
}

// Pipe is a writer that never blocks and never fails. Its methods may be called
// from any goroutine.
type Pipe struct {
	cfg  Config
	wake chan struct{} // has an element when something is to be done
	done chan struct{} // closed when everything has been written after Close

	mu      sync.Mutex
	waiting []byte
	dropped int    // lines, since it was last told
	total   uint64 // lines, in all
	closed  bool
}

// New returns a pipe that writes until it is closed.
func New(c Config) *Pipe {
	if c.Capacity == 0 {
		c.Capacity = defaultCapacity
	}
	p := &Pipe{cfg: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go p.run()
	return p
}

// Write takes whole lines, all of them or none. It keeps no part of b.
func (p *Pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	if p.closed || len(p.waiting)+len(b) > p.cfg.Capacity {
		lines := bytes.Count(b, []byte("\n"))
		p.dropped += lines
		p.total += uint64(lines)
	} else {
		p.waiting = append(p.waiting, b...)
	}
	p.mu.Unlock()
	p.nudge()
	return len(b), nil
}

// Dropped is how many lines were dropped so far.
func (p *Pipe) Dropped() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// Close takes no more lines, and waits at most grace until those that were taken
// have been written.
func (p *Pipe) Close(grace time.Duration) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.nudge()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
}

func (p *Pipe) nudge() {
	select {
	case p.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

// run writes until the pipe is closed: whoever adds a line, or has one dropped, sets
// wake anew, so that one look for each is enough.
func (p *Pipe) run() {
	defer close(p.done)
	var spare []byte
	for range p.wake {
		lines, dropped, closed := p.take(spare)
		if len(lines) > 0 {
			_, _ = p.cfg.Out.Write(lines) // there is nobody to tell
		}
		if closed {
			return // nothing has come since, and what Dropped wrote would be dropped too
		}
		if dropped > 0 && p.cfg.Dropped != nil {
			p.cfg.Dropped(dropped)
		}
		spare = lines[:0]
	}
}

// take returns what waits, and leaves empty in its place.
func (p *Pipe) take(empty []byte) (lines []byte, dropped int, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines, p.waiting = p.waiting, empty
	dropped, p.dropped = p.dropped, 0
	return lines, dropped, p.closed
}
