package playback

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestEveryAddressOfAPlaylistCarriesTheToken(t *testing.T) {
	t.Parallel()
	in := "#EXTM3U\r\n#EXT-X-MAP:URI=\"init.mp4\"\n\n#EXT-X-PART:DURATION=1,URI=\"p.mp4?a=b\",INDEPENDENT=YES\nseg1.mp4\nhttps://ads.example/x.ts\n//ads.example/y.ts\n"
	want := "#EXTM3U\n#EXT-X-MAP:URI=\"init.mp4?token=t%2Ft\"\n\n#EXT-X-PART:DURATION=1,URI=\"p.mp4?a=b&token=t%2Ft\",INDEPENDENT=YES\nseg1.mp4?token=t%2Ft\nhttps://ads.example/x.ts\n//ads.example/y.ts\n"
	if got := signed(t, in, "t/t"); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := signed(t, in, ""); got != in {
		t.Errorf("changed without a token:\n%s", got)
	}
}

func signed(t *testing.T, in, token string) string {
	t.Helper()
	out, err := Sign([]byte(in), token)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// A playlist of a megabyte in which each line is as short as can be, and a token as
// long as there is.
func TestAPlaylistOfManyLinesIsRefused(t *testing.T) {
	for name, line := range map[string]string{"files": "a\n", "tags": `#URI="a"` + "\n", "several in one": `#` + strings.Repeat(`URI="a"`, 1000) + "\n", "all in one": strings.Repeat(`#URI="a"`, maxLine)} {
		for _, n := range []int{maxPlaylist / 4, maxPlaylist} {
			raw, token := bytes.Repeat([]byte(line), n/len(line)), strings.Repeat("t", 700)
			var err error
			growth.Linear(t, maxSigned, 16, 0, func() { _, err = Sign(raw, token) })
			if err == nil {
				t.Errorf("%s: %d bytes pass", name, len(raw))
			}
		}
	}
}

// Whatever the playlist, lines are neither lost nor made, and the token reaches
// no other host.
func FuzzSign(f *testing.F) {
	f.Add("#EXTM3U\n#EXT-X-MAP:URI=\"init.mp4\"\nseg.mp4\nhttps://a.b/c\n")
	f.Fuzz(func(t *testing.T, in string) {
		growth.Linear(t, len(in), 1000, 64<<10, func() { _, _ = Sign([]byte(in), "secret-token") })
		out, err := Sign([]byte(in), "secret-token")
		if err != nil {
			return
		}
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
