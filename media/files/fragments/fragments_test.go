package fragments_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/Eyevinn/mp4ff/mp4"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/files/fragments"
)

// Each track of a film is a file that a parser of others reads, and whose index tells
// where its fragments are.
func TestATrackIsAFile(t *testing.T) {
	t.Parallel()
	raw := ffmpegtest.Film(t, "mp4")
	film, err := fragments.Read(bytes.NewReader(raw), int64(len(raw)))
	if err != nil || len(film.Tracks) != 2 || film.Check(int64(len(raw))) != nil {
		t.Fatalf("%d tracks: %v, %v", len(film.Tracks), err, film.Check(int64(len(raw))))
	}
	video := film.Tracks[0]
	if video.Kind != fragments.Video || video.Width != 320 || video.Height != 240 || film.Tracks[1].Kind != fragments.Audio || film.Tracks[1].SampleRate != 44100 {
		t.Errorf("%+v, %+v", video.Track, film.Tracks[1].Track)
	}
	for _, c := range film.Tracks {
		whole, err := io.ReadAll(fragments.NewReader(c, bytes.NewReader(raw)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := mp4.DecodeFile(bytes.NewReader(whole))
		if err != nil || f.Sidx == nil || len(f.Segments) == 0 {
			t.Fatalf("%v %+v", err, f)
		}
		at := c.Init + c.Index
		for _, ref := range f.Sidx.SidxRefs {
			if string(whole[at+4:at+8]) != "moof" || ref.SAPType != 1 {
				t.Errorf("no fragment at %d: %q", at, whole[at:at+8])
			}
			at += int64(ref.ReferencedSize)
		}
		if at != int64(len(whole)) {
			t.Errorf("the index ends at %d, the file at %d", at, len(whole))
		}
	}
}

// The engine's segments are told by their first bytes alone.
func TestTheHeadOfASegment(t *testing.T) {
	t.Parallel()
	raw := ffmpegtest.Film(t, "mp4")
	film, err := fragments.Read(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	c := film.Tracks[0]
	whole, err := io.ReadAll(fragments.NewReader(c, bytes.NewReader(raw)))
	if err != nil {
		t.Fatal(err)
	}
	track, err := fragments.ReadInit(bytes.NewReader(whole[:c.Init]))
	if err != nil || track != c.Track {
		t.Errorf("%+v, %v; want %+v", track, err, c.Track)
	}
	segment := whole[c.Init+c.Index:]
	boxes := int(binary.BigEndian.Uint32(segment)) + 8
	h, err := fragments.ReadHead(bytes.NewReader(segment[:boxes]))
	if err != nil || h.Time != 0 || h.Bytes != uint64(len(segment)) || h.Duration != 2*uint64(c.Timescale) {
		t.Errorf("%+v, %v", h, err)
	}
	for _, bad := range [][]byte{nil, segment[:boxes-1], segment[:20], whole[:c.Init]} {
		if _, err := fragments.ReadHead(bytes.NewReader(bad)); err == nil {
			t.Errorf("%d bytes are taken for a segment", len(bad))
		}
	}
}

// What a confined process says is not believed.
func TestFilmsThatDoNotFit(t *testing.T) {
	t.Parallel()
	track := fragments.Track{Kind: fragments.Video, Timescale: 1000}
	for name, c := range map[string]fragments.Cut{
		"beyond the end":      {Track: track, Parts: []fragments.Part{{N: 5, From: 6}}},
		"before the start":    {Track: track, Parts: []fragments.Part{{N: 5, From: -2}}},
		"a negative length":   {Track: track, Parts: []fragments.Part{{N: -5, From: 1}}},
		"more than it has":    {Track: track, Own: []byte("ab"), Parts: []fragments.Part{{N: 3, From: -1}}},
		"without a clock":     {Track: fragments.Track{Kind: fragments.Video}},
		"an index beyond":     {Track: track, Init: 5, Own: []byte("ab"), Parts: []fragments.Part{{N: 2, From: -1}}},
		"the same many times": {Track: track, Parts: []fragments.Part{{N: 10, From: 0}, {N: 10, From: 0}, {N: 1, From: 0}}},
	} {
		if (fragments.Film{Tracks: []fragments.Cut{c}}).Check(10) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// Whatever a file is: what is made of it can be read from it, and no more than twice
// its size.
func FuzzRead(f *testing.F) {
	f.Add(ffmpegtest.Film(f, "mp4"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		film, err := fragments.Read(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		if err := film.Check(int64(len(raw))); err != nil {
			t.Fatal(err)
		}
		for _, c := range film.Tracks {
			r := fragments.NewReader(c, bytes.NewReader(raw))
			if n, err := io.Copy(io.Discard, r); err != nil || n != r.Size() {
				t.Fatalf("%d of %d bytes: %v", n, r.Size(), err)
			}
		}
	})
}

// An hour of a film, of 10 pictures and 43 blocks of sound a second: what it takes to
// cut it, and what is remembered of it.
func BenchmarkReadAnHour(b *testing.B) {
	dir := b.TempDir()
	short, hour := filepath.Join(dir, "short.mp4"), filepath.Join(dir, "hour.mp4")
	if err := os.WriteFile(short, ffmpegtest.Film(b, "mp4"), 0o600); err != nil {
		b.Fatal(err)
	}
	loop := exec.Command(ffmpegtest.Tool(b).Binary, "-nostdin", "-loglevel", "error", "-stream_loop", "1799", "-i", short, "-c", "copy", hour)
	if out, err := loop.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	raw, err := os.ReadFile(hour)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		film, err := fragments.Read(bytes.NewReader(raw), int64(len(raw)))
		if err != nil || len(film.Tracks) != 2 {
			b.Fatal(err)
		}
		said, err := json.Marshal(film)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(said))/1e6, "MB/film")
	}
}
