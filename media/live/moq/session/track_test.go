package session

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/media/live/moq/wire"
)

// still is a stream whose bytes have all come.
type still struct{ io.Reader }

func (still) SetReadDeadline(time.Time) error { return nil }
func (still) Stop()                           {}

// come has a group of one object come, whose text is its number.
func come(t *Track, group uint64) {
	raw := bytes.NewReader(wire.AppendObject(nil, []byte(fmt.Sprint(group))))
	t.add(&incoming{Subgroup: wire.Subgroup{Group: group}, stream: still{raw}, in: bufio.NewReader(raw)})
}

// read reads a track to its end, and returns the texts with the milliseconds at which they
// were had.
func read(t *testing.T, track *Track) func() string {
	began, out, done := time.Now(), "", make(chan error, 1)
	go func() {
		for {
			o, err := track.Next(t.Context())
			if err != nil {
				done <- err
				return
			}
			out += fmt.Sprintf(" %s@%d", o.Payload, time.Since(began).Milliseconds())
		}
	}()
	return func() string {
		if err := <-done; !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		return out
	}
}

// Sound of which every frame is a group loses none of them when a later one is taken up
// first, and waits a bounded time for one that does not come.
func TestGroupsThatComeInAnotherOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		come []uint64 // 20 ms apart
		want string
	}{
		{"in order", []uint64{7, 8, 9}, " 7@0 8@20 9@40"},
		{"two in turn", []uint64{0, 2, 1, 3}, " 0@0 1@40 2@40 3@60"},
		{"three in turn", []uint64{0, 3, 2, 1}, " 0@0 1@60 2@60 3@60"},
		{"one is missing", []uint64{0, 2, 3}, " 0@0 2@220 3@220"},
		{"one is too late", []uint64{0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 13}, " 0@0 2@220 3@220 4@220 5@220 6@220 7@220 8@220 9@220 10@220 11@220 12@220 13@260"},
		{"numbers are left out", []uint64{0, 10, 20}, " 0@0 10@220 20@240"},
		{"twice", []uint64{0, 0, 1}, " 0@0 0@20 1@40"},
	} {
		synctest.Test(t, func(t *testing.T) {
			track := &Track{news: make(chan struct{}, 1)}
			got := read(t, track)
			for i, group := range c.come {
				if i > 0 {
					time.Sleep(20 * time.Millisecond) // of the test's clock
				}
				come(track, group)
				synctest.Wait()
			}
			time.Sleep(time.Second) // of the test's clock
			track.finish()
			if got := got(); got != c.want {
				t.Errorf("%s:%s, want%s", c.name, got, c.want)
			}
		})
	}
}

// What has come before the end is had, whatever is missing.
func TestATrackThatEndsWithAGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		track := &Track{news: make(chan struct{}, 1)}
		for _, group := range []uint64{0, 2, 5} {
			come(track, group)
		}
		track.finish()
		if got := read(t, track)(); got != " 0@0 2@0 5@0" {
			t.Error(got)
		}
	})
}

// However many groups wait, their number is bounded, and the newest are kept.
func TestGroupsThatNobodyReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		track := &Track{news: make(chan struct{}, 1)}
		for group := range uint64(10 * queued) {
			come(track, group)
		}
		if n := len(track.waiting); n != queued || track.waiting[0].Group != 9*queued {
			t.Errorf("%d groups wait, from %d on", n, track.waiting[0].Group)
		}
	})
}
