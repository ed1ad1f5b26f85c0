// Package broadcast holds what is live as tracks of groups of objects, and hands them
// to whoever subscribes, each at his own pace.
//
// A track keeps the newest group, and of that at most maxGroup bytes. Objects are
// shared, not copied: a subscriber costs two goroutines, and one who is slow keeps
// one group alive beside the newest. When a group begins while he still
// takes the one before the last, that one is given up.
package broadcast

import (
	"context"
	"sync"

	"sluice.dev/sluice/media/live/moq/wire"
)

// maxGroup bounds what is kept of a group, in bytes. Of a longer one the beginning is
// let go: whoever comes then begins with the next.
const maxGroup = 16 << 20

// behind is how many groups a subscriber may be taking at once.
const behind = 2

// Track is one live track. Its methods may be called at once; Append by one
// goroutine.
type Track struct {
	// Priority is the publisher's: lower goes first.
	Priority byte

	mu    sync.Mutex
	group *group // the newest; nil: none yet
	next  uint64 // id of the next group
	ended bool
	news  chan struct{} // closed at the next change
}

// group is one group; its track's mutex guards it.
type group struct {
	id      uint64
	objects [][]byte
	let     int // how many objects before objects[0] were let go
	bytes   int
	done    bool
	next    *group // nil: this is the newest
}

// NewTrack is an empty track.
func NewTrack(priority byte) *Track { return &Track{Priority: priority, news: make(chan struct{})} }

// Append adds an object, to a new group where begins is set. The track keeps
// it; the caller must not change it. Objects before the first group are
// dropped.
func (t *Track) Append(object []byte, begins bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if begins {
		t.finish()
		g := &group{id: t.next}
		if t.group != nil {
			t.group.next = g
		}
		t.group = g
		t.next++
	}
	g := t.group
	if g == nil || g.done {
		return
	}
	g.objects = append(g.objects, object)
	g.bytes += len(object)
	for g.bytes > maxGroup {
		g.bytes -= len(g.objects[0])
		g.objects[0] = nil
		g.objects = g.objects[1:]
		g.let++
	}
	t.tell()
}

// EndGroup ends the group before the next one begins.
func (t *Track) EndGroup() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finish()
	t.tell()
}

// Close ends the track.
func (t *Track) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finish()
	t.ended = true
	t.tell()
}

// finish ends the newest group.
func (t *Track) finish() {
	if t.group != nil {
		t.group.done = true
	}
}

// tell wakes everybody who waits.
func (t *Track) tell() {
	close(t.news)
	t.news = make(chan struct{})
}

// Writer takes the objects of one group; see session.GroupWriter.
type Writer interface {
	Write([]byte) error
	Close() error
	Reset()
}

// Open begins a group at a subscriber.
type Open func(ctx context.Context, group uint64, priority byte) (Writer, error)

// Edge is the last place before what a subscriber gets who comes now: the end
// of the group before the newest. nil: there is none.
func (t *Track) Edge() *wire.Location {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.group == nil || t.group.id == 0 {
		return nil
	}
	return &wire.Location{Group: t.group.id - 1, Object: 0}
}

// Range is which groups a subscriber wants.
type Range struct {
	Next  bool    // from the next group on, not from the start of the newest
	First uint64  // none before it
	Last  *uint64 // none after it; nil: no end
}

// RangeOf is what a request asks for.
func RangeOf(r wire.Request) Range {
	out := Range{Next: r.Filter == wire.NextGroupStart}
	if r.Filter >= wire.AbsoluteStart {
		out.First = r.Start.Group
	}
	if r.Filter == wire.AbsoluteRange {
		out.Last = &r.EndGroup
	}
	return out
}

// Serve hands the track to a subscriber, until it ends (nil), the range does (nil), or
// ctx.
func (t *Track) Serve(ctx context.Context, r Range, open Open) error {
	var all sync.WaitGroup
	defer all.Wait()
	after, from := t.begin(r)
	var cancels []context.CancelFunc
	defer func() {
		if ctx.Err() != nil {
			for _, c := range cancels {
				c()
			}
		}
	}()
	for {
		g, err := t.groupAfter(ctx, after, from)
		if g == nil || r.Last != nil && g.id > *r.Last {
			return err
		}
		after = g
		if len(cancels) == behind {
			cancels[0]()
			cancels = cancels[1:]
		}
		one, cancel := context.WithCancel(ctx)
		cancels = append(cancels, cancel)
		all.Go(func() {
			defer cancel()
			t.send(one, g, open)
		})
	}
}

// begin is where to begin: after a group, which is nil where the newest one
// may be handed out itself, and not before the group from.
func (t *Track) begin(r Range) (after *group, from uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.group != nil && (t.group.let > 0 || r.Next || r.First > t.group.id) {
		after = t.group
	}
	return after, r.First
}

// groupAfter waits for the group that follows another, or for any where that is nil,
// and is not before from. nil: the track has ended, or ctx, which is the error then.
func (t *Track) groupAfter(ctx context.Context, after *group, from uint64) (*group, error) {
	for {
		t.mu.Lock()
		g, news, ended := t.group, t.news, t.ended
		if after != nil {
			g = after.next
		}
		for g != nil && g.id < from {
			g = g.next
		}
		t.mu.Unlock()
		switch {
		case g != nil:
			return g, nil
		case ended:
			return nil, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// send writes one group. A subscriber who falls behind what is kept of it, or
// whose context ends, gets no more of it.
func (t *Track) send(ctx context.Context, g *group, open Open) {
	w, err := open(ctx, g.id, t.Priority)
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, w.Reset)
	defer stop()
	for i := 0; ; i++ {
		object, more := t.object(ctx, g, i)
		if !more {
			_ = w.Close() // who has gone needs no end
			return
		}
		if object == nil || w.Write(object) != nil {
			w.Reset()
			return
		}
	}
}

// object waits for the object i of g. more is false after the last one; nil
// comes for one that was let go, or when ctx ends.
func (t *Track) object(ctx context.Context, g *group, i int) (object []byte, more bool) {
	for {
		t.mu.Lock()
		at, news, done := i-g.let, t.news, g.done
		switch {
		case at < 0:
			t.mu.Unlock()
			return nil, true
		case at < len(g.objects):
			object = g.objects[at]
			t.mu.Unlock()
			return object, true
		}
		t.mu.Unlock()
		if done {
			return nil, false
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, true
		}
	}
}
