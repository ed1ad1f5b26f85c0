package playback

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
)

func TestEveryAddressOfAPlaylistCarriesTheToken(t *testing.T) {
	t.Parallel()
	in := "#EXTM3U\r\n#EXT-X-MAP:URI=\"init.mp4\"\n\n#EXT-X-PART:DURATION=1,URI=\"p.mp4?a=b\",INDEPENDENT=YES\nseg1.mp4\nhttps://ads.example/x.ts\n//ads.example/y.ts\n"
	want := "#EXTM3U\n#EXT-X-MAP:URI=\"init.mp4?token=t%2Ft\"\n\n#EXT-X-PART:DURATION=1,URI=\"p.mp4?a=b&token=t%2Ft\",INDEPENDENT=YES\nseg1.mp4?token=t%2Ft\nhttps://ads.example/x.ts\n//ads.example/y.ts\n"
	if got := string(sign([]byte(in), "t/t")); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := string(sign([]byte(in), "")); got != in {
		t.Errorf("changed without a token:\n%s", got)
	}
}

// Whatever the playlist, lines are neither lost nor made, and the token reaches
// no other host.
func FuzzSign(f *testing.F) {
	f.Add("#EXTM3U\n#EXT-X-MAP:URI=\"init.mp4\"\nseg.mp4\nhttps://a.b/c\n")
	f.Fuzz(func(t *testing.T, in string) {
		out := sign([]byte(in), "secret-token")
		if got, want := bytes.Count(out, []byte("\n")), len(strings.SplitAfter(strings.TrimSuffix(in, "\n"), "\n")); in != "" && got != want {
			t.Fatalf("%d lines, want %d", got, want)
		}
		for line := range strings.Lines(string(out)) {
			u, err := url.Parse(strings.TrimSpace(line))
			if err == nil && !strings.HasPrefix(line, "#") && u.Host != "" && !strings.Contains(in, "secret-token") && strings.Contains(line, "secret-token") {
				t.Fatalf("leaked: %s", line)
			}
		}
	})
}
