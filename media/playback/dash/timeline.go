package dash

import (
	"context"
	"time"
)

// Timeline is where the segments of a stream on air stand, of its first track.
type Timeline struct {
	Begun    time.Time // when the track's clock said 0
	Longest  time.Duration
	Segments []Span
}

// Span is one segment, on the track's clock.
type Span struct {
	Number          uint64
	Start, Duration time.Duration
}

// Timeline tells where the segments of stream stand, at now, from what Manifest tells of:
// it reads no more, and costs and fails as that does.
func (p *Live) Timeline(ctx context.Context, stream string, now time.Time, get Source) (Timeline, error) {
	l, err := p.know(ctx, stream, now, get)
	if err != nil {
		return Timeline{}, err
	}
	t := l.tracks[0]
	out := Timeline{Begun: l.dated, Longest: l.longest}
	for _, s := range t.segments {
		out.Segments = append(out.Segments, Span{s.number, span(s.time, t.Timescale), span(s.duration, t.Timescale)})
	}
	return out, nil
}
