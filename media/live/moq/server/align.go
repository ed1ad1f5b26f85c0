package server

import (
	"context"
	"sync"
	"time"

	"sluice.dev/sluice/media/live/moq/packaging"
	"sluice.dev/sluice/media/live/moq/session"
)

// The engine takes the first frame of a further track to be of the moment at which it
// comes, counted from the last key frame of the first track (gortsplib's GlobalDecoder2),
// whatever its time is. But a publisher sends the newest group of each track from its
// start: pictures that are seconds old, and sound that is not, come at once. So pictures go
// first, and the first frame of sound is given the time that the engine will take it to be
// of; those of earlier times are left out. That frame is heard at a wrong place, all others
// are where they belong.

// together is how long sound waits for the first picture. A publisher of pictures who sends
// none so long is heard without being seen.
const together = 2 * time.Second

// lead is the last key frame that was written of pictures.
type lead struct {
	mu    sync.Mutex
	at    time.Duration // its time, as its publisher counts
	wrote time.Time
	known chan struct{} // closed when there is one
}

func newLead() *lead { return &lead{known: make(chan struct{})} }

// note keeps a key frame that was just written.
func (l *lead) note(at time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrote.IsZero() {
		close(l.known)
	}
	l.at, l.wrote = at, time.Now()
}

// present waits for a key frame, and returns the time that the engine takes a frame to be of
// that comes now; false: there is none so far.
func (l *lead) present(ctx context.Context) (time.Duration, bool) {
	late := time.NewTimer(together)
	defer late.Stop()
	select {
	case <-l.known:
	case <-late.C:
		return 0, false
	case <-ctx.Done():
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at + time.Since(l.wrote), true
}

// intake is one track of a publisher, from the first frame that needs no other.
type intake struct {
	packaging.Track
	from   *session.Track
	begun  bool
	frames []packaging.Frame // that have come and were not taken
}

// next is the next frame.
func (i *intake) next(ctx context.Context) (f packaging.Frame, err error) {
	for {
		for len(i.frames) > 0 {
			f, i.frames = i.frames[0], i.frames[1:]
			if i.begun = i.begun || i.Begins(f); i.begun {
				return f, nil
			}
		}
		o, err := i.from.Next(ctx)
		if err != nil {
			return f, err
		}
		if i.frames, err = packaging.ParseChunk(o.Payload); err != nil {
			return f, err
		}
	}
}

// pictures writes the frames of a track of pictures, and tells l of key frames.
func (i *intake) pictures(ctx context.Context, l *lead, write func(packaging.Frame) error) error {
	for {
		f, err := i.next(ctx)
		if err != nil {
			return err
		}
		if err := write(f); err != nil {
			return err
		}
		if i.Begins(f) {
			l.note(i.Duration(f.Time))
		}
	}
}

// sound writes the frames of a track of sound, in step with pictures where l is not nil.
func (i *intake) sound(ctx context.Context, l *lead, write func(packaging.Frame) error) error {
	var from time.Duration
	for first := true; ; first = false {
		f, err := i.next(ctx)
		if err != nil {
			return err
		}
		if first && l != nil {
			if at, ok := l.present(ctx); ok {
				from, f.Time = at, i.Ticks(at)
			}
		} else if i.Duration(f.Time) <= from {
			continue
		}
		if err := write(f); err != nil {
			return err
		}
	}
}
