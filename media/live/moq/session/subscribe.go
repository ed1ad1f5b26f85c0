package session

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/media/live/moq/wire"
)

// queued is how many streams of a track may wait to be read. Of more, the oldest is
// given up.
const queued = 32

// reorder is how long a group is waited for whose successor has come: the streams of two
// groups are taken up at once, and the shorter the groups are, the more often a later one
// comes first.
const reorder = 200 * time.Millisecond

// Track is a track that we have subscribed to. One goroutine reads it.
type Track struct {
	s     *Session
	id    uint64
	alias uint64

	mu      sync.Mutex
	waiting []*incoming // by group
	current *incoming
	last    uint64 // group of current, or of the one before
	begun   bool   // last is one
	ended   bool
	news    chan struct{} // holds one when waiting or ended has changed
}

// incoming is a stream of objects.
type incoming struct {
	wire.Subgroup
	stream  ReceiveStream
	in      *bufio.Reader
	came    time.Time
	hurried bool // it has a deadline
}

// Object is one that has arrived.
type Object struct {
	Group   uint64
	Payload []byte
}

// Subscribe asks for a track, from its current place on.
func (s *Session) Subscribe(ctx context.Context, ns wire.Namespace, name string) (*Track, error) {
	t := &Track{s: s, news: make(chan struct{}, 1)}
	err := s.ask(ctx, func(id uint64) wire.Message {
		return wire.Request{ID: id, Namespace: ns, Name: name, Priority: 128, GroupOrder: 1, Forward: 1, Filter: wire.LargestObject}.Message()
	}, func(id uint64) {
		t.id = id
		s.byID[id] = t
	})
	if err != nil {
		s.forget(t)
		return nil, err
	}
	return t, nil
}

// Close ends the subscription.
func (t *Track) Close() error {
	t.s.forget(t)
	t.finish()
	return t.s.write(wire.Number(wire.Unsubscribe, t.id))
}

// forget takes no further streams of t.
func (s *Session) forget(t *Track) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, t.id)
	if s.tracks[t.alias] == t {
		delete(s.tracks, t.alias)
	}
}

// finish says that no further stream comes.
func (t *Track) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.tell()
}

// tell wakes the reader.
func (t *Track) tell() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// Next returns the next object. Groups come in order. One that is behind while a later
// one waits is given up after patience, and one that is missing after reorder, from the
// coming of the later one on; who leaves out numbers is that much later, and loses
// nothing. io.EOF: the track has ended.
func (t *Track) Next(ctx context.Context) (Object, error) {
	for {
		in, err := t.stream(ctx)
		if err != nil {
			return Object{}, err
		}
		payload, err := in.ReadObject(in.in)
		switch {
		case err == nil && payload != nil:
			return Object{in.Group, payload}, nil
		case err == nil: // an object that only says something
			continue
		case errors.Is(err, wire.ErrMalformed):
			return Object{}, err
		}
		in.stream.Stop()
		t.mu.Lock()
		t.current = nil
		t.mu.Unlock()
	}
}

// stream is the one to read from, as soon as there is one.
func (t *Track) stream(ctx context.Context) (*incoming, error) {
	for {
		t.mu.Lock()
		wait := t.advance(time.Now())
		current, ended := t.current, t.ended && len(t.waiting) == 0
		t.mu.Unlock()
		switch {
		case current != nil:
			return current, nil
		case ended:
			return nil, io.EOF
		}
		var missing <-chan time.Time
		if wait > 0 {
			missing = time.After(wait)
		}
		select {
		case <-t.news:
		case <-missing:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// advance makes the first stream that waits the current one, if there is none, or returns
// how long a group before it may still come.
func (t *Track) advance(now time.Time) (wait time.Duration) {
	if t.current != nil || len(t.waiting) == 0 {
		return 0
	}
	next := t.waiting[0]
	if t.begun && !t.ended && next.Group > t.last+1 {
		if wait = next.came.Add(reorder).Sub(now); wait > 0 {
			return wait
		}
	}
	t.current, t.waiting = next, t.waiting[1:]
	t.last, t.begun = next.Group, true
	t.hurry()
	return 0
}

// hurry bounds how long the current group may still take when a later one waits.
func (t *Track) hurry() {
	if t.current != nil && len(t.waiting) > 0 && !t.current.hurried {
		t.current.hurried = true
		_ = t.current.stream.SetReadDeadline(time.Now().Add(patience)) // fails on a closed stream, as the read does
	}
}

// add takes a stream.
func (t *Track) add(in *incoming) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in.came = time.Now()
	if in.Group < t.last || t.ended && t.current == nil && len(t.waiting) == 0 {
		in.stream.Stop()
		return
	}
	at, _ := slices.BinarySearchFunc(t.waiting, in, func(a, b *incoming) int {
		if a.Group <= b.Group { // streams of one group in the order in which they came
			return -1
		}
		return 1
	})
	t.waiting = slices.Insert(t.waiting, at, in)
	if len(t.waiting) > queued {
		t.waiting[0].stream.Stop()
		t.waiting = t.waiting[1:]
	}
	t.hurry()
	t.tell()
}

// receive takes the peer's streams. How many there are at once QUIC bounds.
func (s *Session) receive(ctx context.Context) {
	for {
		stream, err := s.conn.AcceptUniStream(ctx)
		if err != nil {
			return
		}
		go s.head(ctx, stream)
	}
}

// head reads the head of a stream and hands it to its track, which may not be known
// yet: the answer to our request comes on another stream.
func (s *Session) head(ctx context.Context, stream ReceiveStream) {
	in := &incoming{stream: stream, in: bufio.NewReader(stream)}
	_ = stream.SetReadDeadline(time.Now().Add(patience))
	var err error
	if in.Subgroup, err = wire.ReadSubgroup(in.in); err != nil {
		stream.Stop()
		return
	}
	_ = stream.SetReadDeadline(time.Time{})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		s.mu.Lock()
		t, changed, asking := s.tracks[in.Alias], s.changed, len(s.asked) > 0
		s.mu.Unlock()
		if t != nil {
			t.add(in)
			return
		}
		if !asking {
			stream.Stop()
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			stream.Stop()
			return
		case <-ctx.Done():
			return
		}
	}
}
