package dash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/Eyevinn/dash-mpd/mpd"
	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/media/files/fragments"
)

// stream is one of pictures with so many segments.
func stream(segments int) live {
	t := liveTrack{Track: fragments.Track{Kind: fragments.Video, Codecs: "avc1.42C00C", Timescale: 90000, Width: 320, Height: 180},
		id: "video1", init: "a_video1_init.mp4", media: "a_video1_seg$Number$.mp4", bandwidth: 500_000}
	for i := range segments {
		t.segments = append(t.segments, segment{number: uint64(i + 3), time: uint64(i) * 90000, duration: 90000})
	}
	return live{session: "a", begun: time.Unix(1_700_000_000, 0), longest: time.Second, tracks: []liveTrack{t}}
}

// parse reads a manifest back.
func parse(t *testing.T, l live, token string) *mpd.MPD {
	t.Helper()
	text, err := write(l.mpd(token, time.Unix(1_700_000_100, 0)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := mpd.MPDFromBytes(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Segments that follow each other and are as long as each other are one entry; a hole
// begins a further one.
func TestTheTimelineOfATrack(t *testing.T) {
	t.Parallel()
	l := stream(7)
	s := l.tracks[0].segments
	s[3].duration = 100_000
	s[4].time = 370_000
	s[5].time, s[6].time = 500_000, 590_000
	template := parse(t, l, "").Periods[0].AdaptationSets[0].Representations[0].SegmentTemplate
	var got []string
	for _, e := range template.SegmentTimeline.S {
		at := "-"
		if e.T != nil {
			at = fmt.Sprint(*e.T)
		}
		got = append(got, fmt.Sprintf("%s+%d*%d", at, e.D, e.R+1))
	}
	if diff := cmp.Diff([]string{"0+90000*3", "-+100000*1", "-+90000*1", "500000+90000*2"}, got); diff != "" || *template.StartNumber != 3 {
		t.Errorf("from %d: %s", *template.StartNumber, diff)
	}
}

// A token is data: it can neither end an attribute nor be taken for a number.
func TestATokenInAManifest(t *testing.T) {
	t.Parallel()
	m := parse(t, stream(1), `a"><b>$Number$&c`)
	template := m.Periods[0].AdaptationSets[0].Representations[0].SegmentTemplate
	if want := "a_video1_seg$Number$.mp4?token=a%22%3E%3Cb%3E%24Number%24%26c"; template.Media != want || strings.Contains(template.Initialization, "$") {
		t.Errorf("%s\n%s", template.Media, template.Initialization)
	}
}

// What a stream whose segments the engine drops at this moment has left is told; one
// whose playlists make no sense is an error.
func TestWhatTheEngineSays(t *testing.T) {
	t.Parallel()
	const master = "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS=\"avc1.42c00c\"\nvideo1_stream.m3u8\n"
	head := "#EXTM3U\n#EXT-X-VERSION:10\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:3\n"
	for name, list := range map[string]string{
		"no map":      head + "#EXTINF:1,\na_video1_seg3.mp4\n",
		"no segments": head + "#EXT-X-MAP:URI=\"a_video1_init.mp4\"\n",
		"no playlist": "pictures",
	} {
		get := func(_ context.Context, file string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(map[string]string{"index.m3u8": master, "video1_stream.m3u8": list}[file])), nil
		}
		var p Live
		if _, err := p.Manifest(t.Context(), "s", "", time.Now(), get); !errors.Is(err, errUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone := func(context.Context, string) (io.ReadCloser, error) { return nil, fmt.Errorf("ask: %w", ErrNotFound) }
	var p Live
	for i := range maxStreams + 10 {
		if _, err := p.Manifest(t.Context(), fmt.Sprint(i), "", time.Now(), gone); !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	}
	if len(p.streams) > maxStreams {
		t.Errorf("%d streams are remembered", len(p.streams))
	}
}

func BenchmarkManifest(b *testing.B) {
	for _, n := range []int{7, 70, 700} {
		l := stream(n)
		for i := range l.tracks[0].segments { // none as long as the one before
			l.tracks[0].segments[i].duration += uint64(i % 2)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := write(l.mpd("token", time.Unix(1_700_000_100, 0))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
