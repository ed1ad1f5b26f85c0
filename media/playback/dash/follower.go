package dash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/bluenviron/gohlslib/v2/pkg/playlist"
	"sluice.dev/sluice/media/files/fragments"
)

// maxGrowing bounds a segment that grows, in bytes. The engine ends one at 50 MB.
const maxGrowing = 64 << 20

// maxPast is how many whole segments a follower knows the times of.
const maxPast = 16

// patience is how long the engine may take for the next part: a publisher stands still
// then.
const patience = 8 * time.Second

// errBehind says that parts were missed, or that the stream has begun anew.
var errBehind = errors.New("the parts of the stream do not follow each other")

// growing is a segment whose parts come one after another.
type growing struct {
	number   uint64
	time     uint64 // of its first part, where there is one
	duration uint64 // of its parts
	parts    [][]byte
	bytes    int
	whole    bool
}

// follower takes the parts of one track once, as the engine makes them, for everybody
// who wants them. It holds one segment; whoever is still writing the one before holds that.
type follower struct {
	track liveTrack
	get   Source

	mu   sync.Mutex
	now  *growing // nil: not known yet
	past []segment
	err  error         // not nil: it has ended
	news chan struct{} // closed at the next change
}

func newFollower(t liveTrack, get Source) *follower {
	return &follower{track: t, get: get, news: make(chan struct{})}
}

// change changes what others see.
func (f *follower) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	close(f.news)
	f.news = make(chan struct{})
}

// run follows the track until ctx ends or the track does. Each of its playlists is asked
// for when the next part is there: the engine holds the answer back until then.
func (f *follower) run(ctx context.Context) error {
	name := f.track.id + "_stream.m3u8"
	query := ""
	for {
		err := f.step(ctx, name+query)
		if err != nil {
			f.change(func() { f.err = err })
			return err
		}
		query = fmt.Sprintf("?_HLS_msn=%d&_HLS_part=%d", f.now.number, len(f.now.parts))
	}
}

// step reads one playlist and the parts that are new in it.
func (f *follower) step(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var list playlist.Media
	if err := load(ctx, f.get, name, &list); err != nil {
		return err
	}
	if list.Map == nil || list.Map.URI != f.track.init || len(list.Segments) > maxSegments {
		return errBehind
	}
	last := uint64(0)
	for _, s := range list.Segments {
		m := numbered.FindStringSubmatch(s.URI)
		if m == nil {
			continue // a gap
		}
		last, _ = strconv.ParseUint(m[2], 10, 64) // nine digits
		if f.now == nil || f.now.number != last {
			continue
		}
		if err := f.add(ctx, s.Parts); err != nil {
			return err
		}
		if len(s.Parts) == 0 {
			return errBehind
		}
		f.rotate()
	}
	if f.now == nil {
		f.change(func() { f.now = &growing{number: last + 1} })
	}
	if last == 0 || f.now.number != last+1 {
		return errBehind
	}
	return f.add(ctx, list.Parts)
}

// add takes those of the present segment's parts that are new.
func (f *follower) add(ctx context.Context, parts []*playlist.MediaPart) error {
	for len(f.now.parts) < len(parts) {
		raw, err := f.part(ctx, parts[len(f.now.parts)].URI)
		if err != nil {
			return err
		}
		h, err := fragments.ReadHead(bytes.NewReader(raw))
		if err != nil {
			return err
		}
		f.change(func() {
			g := f.now
			if len(g.parts) == 0 {
				g.time = h.Time
				if last := len(f.past) - 1; last >= 0 && h.Time > f.past[last].time {
					f.past[last].duration = h.Time - f.past[last].time
				}
			}
			g.parts, g.bytes, g.duration = append(g.parts, raw), g.bytes+len(raw), g.duration+h.Duration
		})
	}
	return nil
}

// part reads a part.
func (f *follower) part(ctx context.Context, name string) ([]byte, error) {
	body, err := f.get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	left := maxGrowing - f.now.bytes
	raw, err := io.ReadAll(io.LimitReader(body, int64(left)+1))
	if err == nil && len(raw) > left {
		err = errBehind
	}
	return raw, err
}

// rotate begins the next segment.
func (f *follower) rotate() {
	f.change(func() {
		g := f.now
		g.whole = true
		f.past = append(f.past, segment{number: g.number, time: g.time, duration: g.duration})
		f.past = f.past[max(0, len(f.past)-maxPast):]
		f.now = &growing{number: g.number + 1}
	})
}

// ready waits until it is known which segment grows. It fails when the track has ended.
func (f *follower) ready(ctx context.Context) error {
	for {
		f.mu.Lock()
		now, err, news := f.now, f.err, f.news
		f.mu.Unlock()
		if now != nil || err != nil {
			return err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// extend returns the segments with those that have come since, the one that grows, and the
// one after it, so that players ask for that in time. How long these two are is
// foretold: as long as the last one. joined is false when the present cannot be joined to
// the past.
func (f *follower) extend(segments []segment) (out []segment, joined bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out = append(out, segments...)
	for _, s := range f.past {
		if last := out[len(out)-1]; s.number == last.number+1 {
			out = append(out, s)
		} else if s.number == last.number {
			out[len(out)-1] = s
		}
	}
	last := out[len(out)-1]
	if f.now.number == last.number { // it was completed meanwhile, and we are about to hear of it
		out, last = out[:len(out)-1], out[max(0, len(out)-2)]
	}
	if f.now.number != last.number+1 || len(out) == 0 {
		return segments, false
	}
	now := segment{number: f.now.number, time: last.time + last.duration, duration: max(last.duration, f.now.duration)}
	if len(f.now.parts) > 0 {
		now.time = f.now.time
		out[len(out)-1].duration = now.time - last.time
	}
	return append(out, now, segment{number: now.number + 1, time: now.time + now.duration, duration: now.duration}), true
}

// Growth is a segment that is handed out while it grows. One goroutine may use it.
type Growth struct {
	Mime   string // its media type
	f      *follower
	number uint64
	g      *growing // nil: it has not begun
}

// Part waits for the part i. io.EOF: the segment has no more.
func (g *Growth) Part(ctx context.Context, i int) ([]byte, error) {
	for {
		g.f.mu.Lock()
		if g.g == nil && g.f.now.number == g.number {
			g.g = g.f.now
		}
		it, err, news := g.g, g.f.err, g.f.news
		missed := it == nil && g.f.now.number > g.number
		if it != nil && i < len(it.parts) {
			defer g.f.mu.Unlock()
			return it.parts[i], nil
		}
		whole := it != nil && it.whole
		g.f.mu.Unlock()
		switch {
		case whole:
			return nil, io.EOF
		case missed:
			return nil, errBehind
		case err != nil:
			return nil, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
