package broadcast_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"sluice.dev/sluice/media/live/moq/broadcast"
	"sluice.dev/sluice/media/live/moq/wire"
)

// subscriber takes groups, or stands still.
type subscriber struct {
	mu     sync.Mutex
	groups map[uint64]*taken
	blocks chan struct{} // not nil: a write waits until it is closed, or the group is reset
}

// taken is what has come of one group.
type taken struct {
	s             *subscriber
	text          []string
	closed, reset bool
	gone          chan struct{}
}

func (s *subscriber) open(_ context.Context, group uint64, _ byte) (broadcast.Writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &taken{s: s, gone: make(chan struct{})}
	s.groups[group] = t
	return t, nil
}

func (t *taken) Write(b []byte) error {
	if t.s.blocks != nil {
		select {
		case <-t.s.blocks:
		case <-t.gone:
			return errors.New("reset")
		}
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.text = append(t.text, string(b))
	return nil
}

func (t *taken) Close() error {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.closed = true
	return nil
}

func (t *taken) Reset() {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if !t.reset {
		t.reset = true
		close(t.gone)
	}
}

// got is what has come, such as "1:ab| 2:c" where group 1 has ended.
func (s *subscriber) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for id := range uint64(100) {
		t := s.groups[id]
		if t == nil {
			continue
		}
		text := fmt.Sprintf("%d:%s", id, strings.Join(t.text, ""))
		if t.closed {
			text += "|"
		}
		if t.reset {
			text += "!"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// serve has somebody subscribe.
func serve(ctx context.Context, t *broadcast.Track, r broadcast.Range, blocks chan struct{}) (*subscriber, chan error) {
	s, done := &subscriber{groups: map[uint64]*taken{}, blocks: blocks}, make(chan error, 1)
	go func() { done <- t.Serve(ctx, r, s.open) }()
	return s, done
}

// play appends objects: capitals begin groups, each when everybody has taken what
// he takes of the one before.
func play(t *broadcast.Track, text string) {
	for _, c := range text {
		if c < 'a' {
			synctest.Wait()
		}
		t.Append([]byte(string(c)), c < 'a')
	}
	synctest.Wait()
}

func TestWhoComesBeginsWithTheNewestGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		track := broadcast.NewTrack(1)
		play(track, "xAbC")
		if e := track.Edge(); e == nil || e.Group != 0 {
			t.Errorf("edge %v", e)
		}
		last := uint64(2)
		all, allDone := serve(t.Context(), track, broadcast.Range{}, nil)
		next, nextDone := serve(t.Context(), track, broadcast.RangeOf(wire.Request{Filter: wire.NextGroupStart}), nil)
		some, someDone := serve(t.Context(), track, broadcast.Range{First: 2, Last: &last}, nil)
		synctest.Wait()
		play(track, "dEfG")
		if err := <-someDone; err != nil || some.got() != "2:Ef|" {
			t.Errorf("a range: %s, %v", some.got(), err)
		}
		track.Close()
		if err := errors.Join(<-allDone, <-nextDone); err != nil || all.got() != "1:Cd| 2:Ef| 3:G|" || next.got() != "2:Ef| 3:G|" {
			t.Errorf("all: %s, %v; next: %s", all.got(), err, next.got())
		}
	})
}

// A subscriber who stands still loses old groups, and delays nobody.
func TestASlowSubscriberLosesOldGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		track, blocks := broadcast.NewTrack(1), make(chan struct{})
		slow, slowDone := serve(t.Context(), track, broadcast.Range{}, blocks)
		quick, quickDone := serve(t.Context(), track, broadcast.Range{}, nil)
		synctest.Wait()
		play(track, "AbCdEfGh")
		if slow.got() != "0:! 1:! 2: 3:" || quick.got() != "0:Ab| 1:Cd| 2:Ef| 3:Gh" {
			t.Errorf("slow: %s, quick: %s", slow.got(), quick.got())
		}
		close(blocks)
		track.Close()
		if a, b := <-slowDone, <-quickDone; a != nil || b != nil || slow.got() != "0:! 1:! 2:Ef| 3:Gh|" {
			t.Errorf("%v %v, slow: %s", a, b, slow.got())
		}
	})
}

// However long a group is, what is kept of it is bounded: who is behind it gets no
// more of it, and who comes begins with the next.
func TestAGroupWithoutEndIsLetGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		track, blocks := broadcast.NewTrack(1), make(chan struct{})
		slow, _ := serve(t.Context(), track, broadcast.Range{}, blocks)
		track.Append([]byte("A"), true)
		synctest.Wait()
		for range 20 {
			track.Append(bytes.Repeat([]byte("x"), 1<<20), false)
		}
		late, _ := serve(t.Context(), track, broadcast.Range{}, nil)
		synctest.Wait()
		close(blocks)
		synctest.Wait()
		play(track, "Bc")
		if slow.got() != "0:A! 1:Bc" || late.got() != "1:Bc" {
			t.Errorf("slow: %.40s, late: %.40s", slow.got(), late.got())
		}
		track.Close()
	})
}

func TestWhoLeavesIsServedNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		track := broadcast.NewTrack(1)
		ctx, cancel := context.WithCancel(t.Context())
		s, done := serve(ctx, track, broadcast.Range{}, nil)
		synctest.Wait()
		play(track, "Ab")
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		play(track, "cD")
		if s.got() != "0:Ab!" {
			t.Error(s.got())
		}
		track.Close()
	})
}
