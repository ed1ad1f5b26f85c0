package dash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bluenviron/gohlslib/v2/pkg/playlist"
	"sluice.dev/sluice/media/files/fragments"
)

// Bounds of one stream.
const (
	maxPlaylist = 1 << 20 // bytes
	maxTracks   = 16
	maxSegments = 1000 // of a track; the engine keeps 7
)

// fresh is how long what is known of a stream is not asked for again: the playlists of
// a live edge are read at most twice a second, however many watch.
const fresh = 500 * time.Millisecond

// steady is how far the dates of playlists may lie from the clock of the stream before
// what follows from them is moved.
const steady = 500 * time.Millisecond

// maxStreams bounds how many streams are remembered.
const maxStreams = 1000

// Source gets a file of the engine's HLS by its name, which may have a query.
type Source func(ctx context.Context, name string) (io.ReadCloser, error)

// ErrNotFound is what a Source answers for a file that is not there, wrapped.
var ErrNotFound = errors.New("the engine has no such file")

// errUnknown says that the engine's playlists are not as this package knows them.
var errUnknown = errors.New("a playlist that cannot be told as DASH")

// Live writes the manifests of streams on air. It remembers what it has read of each:
// of a segment that it knows nothing is read again. Its zero value is ready.
type Live struct {
	mu      sync.Mutex
	streams map[string]*entry
	edges   map[string]*edge // by stream; those that are followed
}

// entry is what is remembered of one stream.
type entry struct {
	turn chan struct{} // held by whoever reads
	read time.Time
	live live
}

// Manifest writes the manifest of stream for a bearer of token, at now. What is not
// known yet comes from get: the playlists, and the beginning of each new segment. It
// takes time linear in the number of segments. It fails as get does.
func (p *Live) Manifest(ctx context.Context, stream, token string, now time.Time, get Source) ([]byte, error) {
	l, err := p.know(ctx, stream, now, get)
	if err != nil {
		return nil, err
	}
	return write(l.mpd(token, now))
}

// know returns what there is of a stream, from memory or from the engine.
func (p *Live) know(ctx context.Context, stream string, now time.Time, get Source) (live, error) {
	e := p.entry(stream)
	select {
	case <-ctx.Done():
		return live{}, ctx.Err()
	case e.turn <- struct{}{}:
	}
	defer func() { <-e.turn }()
	if age := now.Sub(e.read); age < 0 || age >= fresh {
		next, err := read(ctx, get, e.live)
		if err != nil {
			return live{}, err
		}
		e.read, e.live = now, next
	}
	return e.live, nil
}

// entry finds a stream, or begins to remember it; an old one gives way for it.
func (p *Live) entry(stream string) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.streams[stream]; ok {
		return e
	}
	if p.streams == nil {
		p.streams = map[string]*entry{}
	}
	for id := range p.streams { // any: what is forgotten is read again
		if len(p.streams) < maxStreams {
			break
		}
		delete(p.streams, id)
	}
	e := &entry{turn: make(chan struct{}, 1)}
	p.streams[stream] = e
	return e
}

// read asks the engine what there is, knowing what there was.
func read(ctx context.Context, get Source, before live) (live, error) {
	var master playlist.Multivariant
	if err := load(ctx, get, "index.m3u8", &master); err != nil {
		return live{}, err
	}
	var now live
	names, rate := media(master)
	for _, name := range names {
		if err := now.add(ctx, get, name, rate, before); err != nil {
			return live{}, err
		}
	}
	if len(now.tracks) == 0 || now.begun.IsZero() {
		return live{}, errUnknown
	}
	if now.dated = now.begun; now.session == before.session && now.dated.Sub(before.dated).Abs() < steady {
		now.dated = before.dated
	}
	if now.session == before.session { // a period's start does not move
		now.begun = before.begun
	}
	return now, nil
}

// media lists the playlists of a stream's tracks, and the rate of its pictures as
// manifests have it.
func media(m playlist.Multivariant) (names []string, rate string) {
	for _, v := range m.Variants {
		names = append(names, v.URI)
		if v.FrameRate != nil && *v.FrameRate > 0 {
			rate = strconv.Itoa(int(math.Round(*v.FrameRate*1000))) + "/1000"
		}
	}
	for _, r := range m.Renditions {
		if r.URI != nil && r.Type == playlist.MultivariantRenditionTypeAudio {
			names = append(names, *r.URI)
		}
	}
	return names[:min(len(names), maxTracks)], rate
}

// add reads the playlist called name and puts its track into l.
func (l *live) add(ctx context.Context, get Source, name, rate string, before live) error {
	var list playlist.Media
	if err := load(ctx, get, name, &list); err != nil {
		return err
	}
	if list.PartInf != nil {
		l.part = max(l.part, list.PartInf.PartTarget)
	}
	if list.Map == nil || len(list.Segments) == 0 || len(list.Segments) > maxSegments {
		return errUnknown
	}
	t := liveTrack{id: strings.TrimSuffix(name, "_stream.m3u8"), init: list.Map.URI, frameRate: rate}
	known := before.track(t.init)
	if err := t.describe(ctx, get, known); err != nil {
		return err
	}
	begun, err := t.follow(ctx, get, list, known)
	if err != nil {
		return err
	}
	if l.session == "" {
		l.session, _, _ = strings.Cut(t.init, "_")
		l.begun = begun
	}
	for _, s := range t.segments { // the playlist's is rounded
		l.longest = max(l.longest, time.Duration(list.TargetDuration)*time.Second, span(s.duration, t.Timescale))
	}
	l.tracks = append(l.tracks, t)
	return nil
}

// track is the one with this initialisation segment; nil: there is none.
func (l live) track(init string) *liveTrack {
	for i := range l.tracks {
		if l.tracks[i].init == init {
			return &l.tracks[i]
		}
	}
	return nil
}

// describe learns what the track is.
func (t *liveTrack) describe(ctx context.Context, get Source, known *liveTrack) error {
	if known != nil {
		t.Track, t.bandwidth = known.Track, known.bandwidth
		return nil
	}
	body, err := get(ctx, t.init)
	if err != nil {
		return err
	}
	defer body.Close()
	t.Track, err = fragments.ReadInit(body)
	return err
}

// numbered is a segment's name: what stands before its number, the number, and what
// stands after it.
var numbered = regexp.MustCompile(`^([A-Za-z0-9_-]{1,80}_seg)([0-9]{1,9})(\.[a-z0-9]{1,8})$`)

// follow puts the playlist's segments into t, and returns when the track's clock said 0
// by the playlist's dates. A segment that the engine drops meanwhile is left out with
// those before it.
func (t *liveTrack) follow(ctx context.Context, get Source, list playlist.Media, known *liveTrack) (begun time.Time, err error) {
	for _, s := range list.Segments {
		m := numbered.FindStringSubmatch(s.URI)
		if m == nil {
			continue // a gap
		}
		t.media = m[1] + "$Number$" + m[3]
		number, _ := strconv.ParseUint(m[2], 10, 64) // nine digits
		next, err := t.segment(ctx, get, s.URI, number, known, list.PartInf != nil)
		if errors.Is(err, ErrNotFound) {
			t.segments = nil
			continue
		}
		if err != nil {
			return begun, err
		}
		if last := len(t.segments) - 1; last >= 0 && next.number != t.segments[last].number+1 {
			t.segments = nil // the list has a hole: numbers must follow each other
		} else if last >= 0 && next.time > t.segments[last].time {
			t.segments[last].duration = next.time - t.segments[last].time
		}
		t.segments = append(t.segments, next)
		if s.DateTime != nil {
			begun = s.DateTime.Add(-span(next.time, t.Timescale))
		}
	}
	if len(t.segments) == 0 {
		return begun, fmt.Errorf("%w: no segments", errUnknown)
	}
	return begun, nil
}

// segment is where a segment stands: from memory, or from its first bytes; from all of them
// where it is made of parts.
func (t *liveTrack) segment(ctx context.Context, get Source, name string, number uint64, known *liveTrack, parts bool) (segment, error) {
	if known != nil && len(known.segments) > 0 && number >= known.segments[0].number {
		if i := number - known.segments[0].number; i < uint64(len(known.segments)) {
			return known.segments[i], nil
		}
	}
	body, err := get(ctx, name)
	if err != nil {
		return segment{}, err
	}
	defer body.Close()
	read := fragments.ReadHead
	if parts {
		read = fragments.ReadHeads
	}
	h, err := read(body)
	if err != nil {
		return segment{}, err
	}
	if d := span(h.Duration, t.Timescale).Seconds(); d > 0 {
		t.bandwidth = max(t.bandwidth, uint32(min(float64(h.Bytes)*8/d, math.MaxUint32)))
	}
	return segment{number: number, time: h.Time, duration: h.Duration}, nil
}

// load gets a playlist and reads it.
func load(ctx context.Context, get Source, name string, into playlist.Playlist) error {
	body, err := get(ctx, name)
	if err != nil {
		return err
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, maxPlaylist+1))
	if err != nil {
		return err
	}
	if len(raw) > maxPlaylist {
		return errUnknown
	}
	if err := into.Unmarshal(raw); err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return nil
}
