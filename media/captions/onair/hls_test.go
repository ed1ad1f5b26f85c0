package onair

import (
	"strings"
	"testing"
	"time"

	"github.com/bluenviron/gohlslib/v2/pkg/playlist"
	"sluice.dev/sluice/media/playback/dash"
	"sluice.dev/sluice/media/transcribe/transcript"
	"sluice.dev/sluice/platform/limits/growth"
)

const master = "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"audio\",NAME=\"a\",URI=\"audio2_stream.m3u8\"\n\n" +
	"#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS=\"avc1.42c01f,mp4a.40.2\",AUDIO=\"audio\"\r\nvideo1_stream.m3u8\n"

func TestCaptionsAreAmongTheVariants(t *testing.T) {
	t.Parallel()
	if got := Multivariant([]byte(master), nil); string(got) != master {
		t.Errorf("%s", got)
	}
	var read playlist.Multivariant
	if err := read.Unmarshal(Multivariant([]byte(master), []Rendition{{"en", `Plain "English"`}, {"de", "Deutsch"}})); err != nil {
		t.Fatal(err)
	}
	if len(read.Variants) != 1 || read.Variants[0].Subtitles != "captions" || read.Variants[0].Audio != "audio" || len(read.Renditions) != 3 {
		t.Fatalf("%+v", read)
	}
	en, de := read.Renditions[1], read.Renditions[2]
	if en.Type != "SUBTITLES" || en.Name != "Plain 'English'" || en.Language != "en" || *en.URI != "captions_en.m3u8" || !en.Default || de.Default || !de.Autoselect {
		t.Errorf("%+v %+v", en, de)
	}
}

func TestCaptionsHaveTheTimelineOfTheStream(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	list := Playlist(dash.Timeline{Begun: begun, Longest: 1100 * time.Millisecond,
		Segments: []dash.Span{{Number: 7, Start: 7 * time.Second, Duration: time.Second}, {Number: 8, Start: 8 * time.Second, Duration: 1100 * time.Millisecond}}}, "pt-br")
	var read playlist.Media
	if err := read.Unmarshal(list); err != nil || read.TargetDuration != 2 || read.MediaSequence != 7 || len(read.Segments) != 2 {
		t.Fatalf("%v %+v", err, read)
	}
	last := read.Segments[1]
	if !last.DateTime.Equal(begun.Add(8*time.Second)) || last.Duration != 1100*time.Millisecond {
		t.Errorf("%+v", last)
	}
	p, ok := ParsePiece(last.URI)
	if !ok || p.Language != "pt-br" || !p.From.Equal(begun.Add(8*time.Second)) || p.Start != 8*time.Second || p.Length != last.Duration {
		t.Errorf("%v %+v", ok, p)
	}
}

// What was said is shown whole in each piece in which it is seen, at the same time.
func TestCuesInPieces(t *testing.T) {
	t.Parallel()
	words := []transcript.Word{{Word: "No", Start: 5, End: 5.4}, {Word: "matter.", Start: 5.5, End: 6.2}, {Word: "Try", Start: 9, End: 9.3}, {Word: "again.", Start: 9.4, End: 10}}
	cues := schedule(transcript.Transcript{Words: words, Duration: 10})
	const at = 100.25
	for start, want := range map[time.Duration]string{
		99:  "",
		100: "\n3-0\n00:01:40.250 --> 00:01:41.750\nNo matter.\n",
		101: "\n3-0\n00:01:40.250 --> 00:01:41.750\nNo matter.\n\n3-1\n00:01:41.750 --> 00:01:43.250\nTry again.\n",
		102: "\n3-1\n00:01:41.750 --> 00:01:43.250\nTry again.\n",
		104: "",
	} {
		out := &strings.Builder{}
		write(out, Piece{Start: start * time.Second, Length: time.Second}, 3, cues, at)
		if out.String() != want {
			t.Errorf("%d: %q", start, out)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add("captions_en_1767225600000_8000_1000.vtt")
	f.Add("captions_pt-br.m3u8")
	f.Fuzz(func(t *testing.T, file string) {
		growth.Linear(t, len(file), 60, 8<<10, func() {
			if p, ok := ParsePiece(file); ok && (p.Length < 0 || p.Length > maxPiece || p.Start < 0 || p.From.Before(time.Unix(0, 0)) || p.Language == "") {
				t.Errorf("%+v", p)
			}
			if language, ok := ParseList(file); ok && strings.ContainsAny(language, "/._") {
				t.Errorf("%q", language)
			}
		})
	})
}

func FuzzMultivariant(f *testing.F) {
	f.Add([]byte(master))
	f.Fuzz(func(t *testing.T, list []byte) {
		lines := strings.Count(string(list), "#EXT-X-STREAM-INF:")
		growth.Linear(t, len(list)+300*(lines+2), 20, 8<<10, func() {
			if got := Multivariant(list, []Rendition{{"en", "English"}, {"de", "\"\n"}}); len(got) > len(list)+300*(lines+2) {
				t.Errorf("%d bytes of %d", len(got), len(list))
			}
		})
	})
}
