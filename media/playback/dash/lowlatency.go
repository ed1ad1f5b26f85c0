package dash

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/Eyevinn/dash-mpd/mpd"
	"golang.org/x/sync/errgroup"
)

// Bounds of what is followed for low latency.
const (
	// maxEdges is how many streams are followed at once. Each takes five requests a second
	// to the engine for each track, and holds a segment of each.
	maxEdges = 200
	// idle is how long a stream is followed when nobody asks for it.
	idle = 15 * time.Second
)

// lowLatencyProfile is that of DASH-IF's guidelines for low latency.
const lowLatencyProfile = "http://www.dashif.org/guidelines/low-latency-live-v5"

// edge is a stream that is followed: its tracks, as they grow.
type edge struct {
	session string
	tracks  []*follower
	cancel  context.CancelFunc
	unused  *time.Timer
}

// LowLatency writes the manifest of stream as Manifest does, with the segments that are
// not complete yet: players ask for them while they grow; see Growing. It is that of
// Manifest where the engine makes no parts, or too many streams are followed already.
func (p *Live) LowLatency(ctx context.Context, stream, token string, now time.Time, get Source) ([]byte, error) {
	l, err := p.know(ctx, stream, now, get)
	if err != nil {
		return nil, err
	}
	e := p.follow(stream, l, get)
	if e == nil {
		return write(l.mpd(token, now))
	}
	for _, f := range e.tracks {
		if err := f.ready(ctx); err != nil {
			return nil, err
		}
	}
	return write(l.lowLatency(e, token, now))
}

// follow finds the edge of a stream, or begins to follow it. nil: it is not followed.
func (p *Live) follow(stream string, l live, get Source) *edge {
	if l.part == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.edges[stream]; e != nil && e.session == l.session && len(e.tracks) == len(l.tracks) && !e.ended() {
		e.unused.Reset(idle)
		return e
	} else if e != nil {
		e.cancel()
	} else if len(p.edges) >= maxEdges {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &edge{session: l.session, cancel: cancel, unused: time.AfterFunc(idle, cancel)}
	group, ctx := errgroup.WithContext(ctx)
	for _, t := range l.tracks {
		f := newFollower(t, get)
		e.tracks = append(e.tracks, f)
		group.Go(func() error { return f.run(ctx) })
	}
	if p.edges == nil {
		p.edges = map[string]*edge{}
	}
	p.edges[stream] = e
	go func() {
		_ = group.Wait() // whoever waits was told by its follower; the next manifest begins anew
		cancel()
		e.unused.Stop()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.edges[stream] == e {
			delete(p.edges, stream)
		}
	}()
	return e
}

// ended reports whether a track of e is followed no more.
func (e *edge) ended() bool {
	return slices.ContainsFunc(e.tracks, func(f *follower) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.err != nil
	})
}

// Growing finds the segment of that name that grows, or comes next. nil: there is none; the
// engine has it, or nobody.
func (p *Live) Growing(stream, name string) *Growth {
	m := numbered.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	number, _ := strconv.ParseUint(m[2], 10, 64) // nine digits
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.edges[stream]
	if e == nil {
		return nil
	}
	i := slices.IndexFunc(e.tracks, func(f *follower) bool { return f.track.media == m[1]+"$Number$"+m[3] })
	if i < 0 {
		return nil
	}
	f := e.tracks[i]
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || f.now == nil || number != f.now.number && number != f.now.number+1 {
		return nil
	}
	e.unused.Reset(idle)
	g := &Growth{Mime: f.track.Mime(), f: f, number: number}
	if f.now.number == number {
		g.g = f.now
	}
	return g
}

// latency is how far behind the present players of low latency are to be.
func (l live) latency() time.Duration { return time.Second + 5*l.part/2 }

// How much faster or slower than real time players may play to come to that distance.
const slowest, fastest = 0.96, 1.04

// lowLatency is the manifest of l with what grows of it.
func (l live) lowLatency(e *edge, token string, now time.Time) *mpd.MPD {
	l.tracks = slices.Clone(l.tracks)
	joined := make([]bool, len(l.tracks))
	for i := range l.tracks {
		t := &l.tracks[i]
		t.segments, joined[i] = e.tracks[i].extend(t.segments)
	}
	m := l.mpd(token, now)
	m.Profiles = m.Profiles.AddProfile(lowLatencyProfile)
	m.SuggestedPresentationDelay, m.MinBufferTime = duration(l.latency()), duration(2*l.part)
	least, target, most := uint32(l.part.Milliseconds()), uint32(l.latency().Milliseconds()), uint32(3*l.latency().Milliseconds())
	m.ServiceDescription = []*mpd.ServiceDescriptionType{{
		Latencies:     []*mpd.LatencyType{{Min: &least, Target: &target, Max: &most}},
		PlaybackRates: []*mpd.PlaybackRateType{{Min: slowest, Max: fastest}},
	}}
	for i, set := range m.Periods[0].AdaptationSets {
		if !joined[i] {
			continue
		}
		t := l.tracks[i]
		ahead := span(t.segments[len(t.segments)-1].duration, t.Timescale) - l.part
		template := set.Representations[0].SegmentTemplate
		template.AvailabilityTimeOffset = mpd.FloatInf64(math.Round(max(0, ahead.Seconds())*1000) / 1000)
		template.AvailabilityTimeComplete = mpd.Ptr(false)
	}
	return m
}
