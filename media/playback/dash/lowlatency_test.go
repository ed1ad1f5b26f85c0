package dash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Eyevinn/dash-mpd/mpd"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/mpeg4audio"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/fmp4"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/fmp4/seekablebuffer"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mp4/codecs"
)

// maker is an engine that makes parts when the test says so: four to a segment, each of
// 0.25 seconds of 48,000 ticks.
type maker struct {
	mu    sync.Mutex
	parts int // so far, from segment 7 on
	gone  bool
	news  chan struct{}
}

const partTicks, partsEach, firstSegment = 12000, 4, 7

// make makes a part, or, with none left, ends the stream.
func (m *maker) make(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts += n
	m.gone = n == 0
	close(m.news)
	m.news = make(chan struct{})
}

func partOf(n int) []byte {
	var out seekablebuffer.Buffer
	p := fmp4.Part{SequenceNumber: uint32(n), Tracks: []*fmp4.PartTrack{{ID: 1, BaseTime: uint64(n * partTicks), Samples: []*fmp4.Sample{{Duration: partTicks, Payload: []byte(fmt.Sprint("sound ", n))}}}}}
	if err := p.Marshal(&out); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// list is the playlist of what there is.
func (m *maker) list() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#EXTM3U\n#EXT-X-VERSION:10\n#EXT-X-TARGETDURATION:1\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.625\n#EXT-X-PART-INF:PART-TARGET=0.25\n#EXT-X-MEDIA-SEQUENCE:6\n"+
		"#EXT-X-MAP:URI=\"a_audio1_init.mp4\"\n#EXT-X-GAP\n#EXTINF:1.0,\ngap.mp4\n")
	whole := m.parts / partsEach
	for s := range whole {
		if whole-s <= 2 {
			fmt.Fprintf(&b, "#EXT-X-PROGRAM-DATE-TIME:%s\n", time.Unix(int64(1_700_000_000+s), 0).UTC().Format("2006-01-02T15:04:05.000Z"))
			for p := range partsEach {
				fmt.Fprintf(&b, "#EXT-X-PART:DURATION=0.25,URI=\"a_audio1_part%d.mp4\"\n", s*partsEach+p)
			}
		}
		fmt.Fprintf(&b, "#EXTINF:1.0,\na_audio1_seg%d.mp4\n", firstSegment+s)
	}
	for p := whole * partsEach; p < m.parts; p++ {
		fmt.Fprintf(&b, "#EXT-X-PART:DURATION=0.25,URI=\"a_audio1_part%d.mp4\"\n", p)
	}
	fmt.Fprintf(&b, "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"a_audio1_part%d.mp4\"\n", m.parts)
	return b.String()
}

// get implements Source.
func (m *maker) get(ctx context.Context, name string) (io.ReadCloser, error) {
	file, query, _ := strings.Cut(name, "?")
	var segment, part int
	if _, err := fmt.Sscanf(query, "_HLS_msn=%d&_HLS_part=%d", &segment, &part); query != "" && err != nil {
		return nil, err
	}
	for {
		m.mu.Lock()
		have, gone, news, list := m.parts, m.gone, m.news, m.list()
		m.mu.Unlock()
		var out []byte
		switch {
		case gone:
			return nil, ErrNotFound
		case query != "" && (segment-firstSegment)*partsEach+part >= have:
			select {
			case <-news:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			continue
		case file == "index.m3u8":
			out = []byte("#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS=\"mp4a.40.2\"\naudio1_stream.m3u8\n")
		case file == "audio1_stream.m3u8":
			out = []byte(list)
		case file == "a_audio1_init.mp4":
			out = initOf()
		}
		var n int
		if _, err := fmt.Sscanf(file, "a_audio1_part%d.mp4", &n); err == nil && n < have {
			out = partOf(n)
		}
		if _, err := fmt.Sscanf(file, "a_audio1_seg%d.mp4", &n); err == nil {
			for p := range partsEach {
				out = append(out, partOf((n-firstSegment)*partsEach+p)...)
			}
		}
		if out == nil {
			return nil, ErrNotFound
		}
		return io.NopCloser(bytes.NewReader(out)), nil
	}
}

func initOf() []byte {
	var out seekablebuffer.Buffer
	config := mpeg4audio.AudioSpecificConfig{Type: mpeg4audio.ObjectTypeAACLC, SampleRate: 48000, ChannelConfig: 2}
	in := fmp4.Init{Tracks: []*fmp4.InitTrack{{ID: 1, TimeScale: 48000, Codec: &codecs.MPEG4Audio{Config: config}}}}
	if err := in.Marshal(&out); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// manifest reads the manifest of low latency.
func (m *maker) manifest(t *testing.T, p *Live, now time.Time) (*mpd.MPD, *mpd.SegmentTemplateType, string) {
	t.Helper()
	text, err := p.LowLatency(t.Context(), "s", "", now, m.get)
	if err != nil {
		t.Fatal(err)
	}
	out, err := mpd.MPDFromBytes(text)
	if err != nil {
		t.Fatal(err)
	}
	template := out.Periods[0].AdaptationSets[0].Representations[0].SegmentTemplate
	timeline := ""
	for _, s := range template.SegmentTimeline.S {
		timeline += fmt.Sprintf("%d*%d ", s.D, s.R+1)
	}
	return out, template, fmt.Sprint(*template.StartNumber, ": ", timeline)
}

// want fails unless the next part of a segment is the part n of the stream.
func want(t *testing.T, g *Growth, i, n int) {
	t.Helper()
	got, err := g.Part(t.Context(), i)
	if err != nil || !bytes.Equal(got, partOf(n)) {
		t.Fatalf("part %d: %d bytes, %v", i, len(got), err)
	}
}

// A segment is handed out part by part before it is complete, to whoever asks, and the
// next one to who asks early; the manifest says so.
func TestASegmentIsHandedOutWhileItGrows(t *testing.T) {
	t.Parallel()
	m, p, now := &maker{news: make(chan struct{})}, &Live{}, time.Unix(1_700_000_100, 0)
	m.make(2*partsEach + 1)
	if p.Growing("s", "a_audio1_seg9.mp4") != nil {
		t.Error("a stream that nobody has asked for is followed")
	}
	out, template, timeline := m.manifest(t, p, now)
	if timeline != "7: 48000*4 " { // two that are whole, the one that grows, and the next
		t.Error(timeline)
	}
	if template.AvailabilityTimeOffset != 0.75 || template.AvailabilityTimeComplete == nil || *template.AvailabilityTimeComplete {
		t.Errorf("%+v", template)
	}
	if l := out.ServiceDescription[0].Latencies[0]; *l.Target != 1625 || *l.Min != 250 || !strings.Contains(string(out.Profiles), lowLatencyProfile) || len(out.UTCTimings) != 1 {
		t.Errorf("%+v, %s", l, out.Profiles)
	}
	for name, there := range map[string]bool{"a_audio1_seg8.mp4": false, "a_audio1_seg9.mp4": true, "a_audio1_seg10.mp4": true, "a_audio1_seg11.mp4": false,
		"b_audio1_seg9.mp4": false, "a_audio1_init.mp4": false, "a_audio1_part9.mp4": false} {
		if got := p.Growing("s", name) != nil; got != there {
			t.Errorf("%s: %v", name, got)
		}
	}
	grows, next, other := p.Growing("s", "a_audio1_seg9.mp4"), p.Growing("s", "a_audio1_seg10.mp4"), p.Growing("s", "a_audio1_seg9.mp4")
	want(t, grows, 0, 8)
	m.make(1)
	want(t, grows, 1, 9)
	m.make(3) // the segment is whole, and the next one has begun
	want(t, grows, 2, 10)
	want(t, grows, 3, 11)
	if _, err := grows.Part(t.Context(), 4); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	want(t, next, 0, 12)
	for i := range partsEach {
		want(t, other, i, 8+i)
	}
	if _, _, timeline := m.manifest(t, p, now.Add(time.Second)); timeline != "7: 48000*5 " {
		t.Error(timeline)
	}
	m.make(0)
	if _, err := next.Part(t.Context(), 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("a stream that has ended: %v", err)
	}
}

// A viewer who comes too late for a segment is not given another one.
func TestASegmentThatWasMissed(t *testing.T) {
	t.Parallel()
	m, p := &maker{news: make(chan struct{})}, &Live{}
	m.make(partsEach)
	m.manifest(t, p, time.Unix(1_700_000_100, 0))
	late, after := p.Growing("s", "a_audio1_seg9.mp4"), p.Growing("s", "a_audio1_seg8.mp4")
	for i := range partsEach {
		m.make(1)
		want(t, after, i, partsEach+i)
	}
	m.make(partsEach + 1)
	newer := p.Growing("s", "a_audio1_seg10.mp4")
	for newer == nil { // until the follower has seen that segment 9 is whole
		newer = p.Growing("s", "a_audio1_seg10.mp4")
	}
	want(t, newer, 0, 3*partsEach)
	if _, err := late.Part(t.Context(), 0); !errors.Is(err, errBehind) {
		t.Error(err)
	}
}

// followed is how many streams are followed.
func (p *Live) followed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.edges)
}

// The number of streams that are followed is bounded; further ones are told as they were
// before.
func TestFollowedStreamsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := &maker{news: make(chan struct{})}, &Live{}
		m.make(2 * partsEach)
		for i := range maxEdges + 5 {
			text, err := p.LowLatency(t.Context(), fmt.Sprint(i), "", time.Unix(1_700_000_100, 0), m.get)
			if low := bytes.Contains(text, []byte("availabilityTimeComplete")); err != nil || low != (i < maxEdges) {
				t.Fatalf("stream %d: %v, %v", i, low, err)
			}
		}
		m.make(0)
		synctest.Wait()
		if n := p.followed(); n > 0 {
			t.Errorf("%d streams that have ended are followed", n)
		}
	})
}

// A stream for which nobody asks any more is let go, and one that stands still too.
func TestWhoIsFollowedNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p, parts := &maker{news: make(chan struct{})}, &Live{}, 2*partsEach
		m.make(parts)
		m.manifest(t, p, time.Now())
		g := p.Growing("s", "a_audio1_seg9.mp4")
		for range 2 * int(idle/time.Second) {
			time.Sleep(time.Second) // of the test's clock
			m.make(1)
			if synctest.Wait(); p.followed() == 0 {
				break
			}
		}
		if _, err := g.Part(t.Context(), partsEach); p.followed() > 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%d are followed, %v", p.followed(), err)
		}
		m.manifest(t, p, time.Now())
		m.mu.Lock()
		next := fmt.Sprintf("a_audio1_seg%d.mp4", firstSegment+m.parts/partsEach+1)
		m.mu.Unlock()
		g = p.Growing("s", next)
		if _, err := g.Part(t.Context(), 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a publisher that stands still: %v", err)
		}
		synctest.Wait()
	})
}
