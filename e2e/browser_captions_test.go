//go:build browser && clients

package e2e

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// hlsPage plays HLS with hls.js on somebody else's page, and keeps what it shows of
// captions: how far from the moment at which the video is.
const hlsPage = `<!doctype html><title>hls.js</title><main><video muted autoplay playsinline></video></main><script src="/script.js"></script>
<script>
const faults = [], shown = [], video = document.querySelector("video"), player = new Hls();
player.on(Hls.Events.ERROR, (_, e) => { if (e.fatal) faults.push(e.type + " " + e.details); });
player.on(Hls.Events.SUBTITLE_TRACKS_UPDATED, () => { player.subtitleDisplay = true; player.subtitleTrack = 0; });
player.loadSource(new URLSearchParams(location.search).get("src"));
player.attachMedia(video);
</script>`

// captioned waits until captions are shown while the video plays, and returns them.
const captioned = `new Promise((done, failed) => {
	const look = setInterval(() => {
		for (const track of video.textTracks) {
			for (const cue of track.activeCues || []) {
				if (!shown.includes(cue.text) && !video.paused && video.currentTime >= cue.startTime && video.currentTime <= cue.endTime) shown.push(cue.text);
			}
		}
		if (shown.length < 2 && !faults.length) return;
		clearInterval(look);
		done({text: shown.join(" "), language: video.textTracks[0]?.language, label: video.textTracks[0]?.label, faults: faults});
	}, 100);
	setTimeout(() => failed(new Error("no captions: at " + video.currentTime + ", " + video.textTracks.length + " tracks, " + [...video.textTracks].map(t => t.cues?.length) + " " + faults)), 180000);
})`

// ownCaptioned touches the button of our own page until captions are shown, and returns
// them, and whether the page has room for all that stands above the pictures.
const ownCaptioned = `new Promise((done, failed) => {
	const video = document.querySelector("video"), cc = document.querySelector(".cc");
	const look = setInterval(() => {
		if (cc.hidden || video.paused) return;
		if (cc.getAttribute("aria-pressed") !== "true") return cc.click();
		const track = [...video.textTracks].find(t => t.mode === "showing");
		const cue = [...track?.activeCues || []].find(c => video.currentTime >= c.startTime && video.currentTime <= c.endTime);
		if (!cue) return;
		clearInterval(look);
		const title = document.querySelector("h1").getBoundingClientRect(), button = cc.getBoundingClientRect(), text = cue.text;
		cc.click(); // none, after the last
		done({text: text, language: track.language, label: track.label, wide: document.documentElement.scrollWidth > innerWidth,
			covered: button.left < title.right || button.right > innerWidth, after: track.mode});
	}, 100);
	setTimeout(() => failed(new Error("no captions: at " + video.currentTime + ", " + cc.outerHTML + [...video.textTracks].map(t => t.mode + " " + t.cues?.length))), 180000);
})`

// What is said in a stream on air is shown by hls.js, and by our own page, while it plays.
func TestClientsBrowserCaptions(t *testing.T) {
	s, page := studio(t), playerPage(t, hlsPage, "hls.js", "dist", "hls.min.js")
	key := s.dev["SLUICE_API_KEY"]
	made := s.createShow(t, key, map[string]any{"playback_policy": "signed"})
	wantStatus(t, call(t, http.MethodPost, s.url("/v1/streams/"+made.ID+"/captions"), key, map[string]any{"language": "en", "label": "English", "generate": true}), http.StatusCreated)
	name := filepath.Join(t.TempDir(), "talk.wav")
	if err := os.WriteFile(name, talk(t), 0o600); err != nil {
		t.Fatal(err)
	}
	publish(t, made, made.Ingest.RTMP.Key, []string{"-re", "-stream_loop", "-1", "-i", name, "-f", "lavfi", "-re", "-i", "testsrc2=size=320x180:rate=10", "-map", "1:v", "-map", "0:a",
		"-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p", "-g", "10", "-c:a", "aac", "-ar", "48000", "-f", "flv"})
	r := call(t, http.MethodPost, s.url("/v1/streams/"+made.ID+"/tokens"), key, map[string]any{"viewer": "one"})
	wantStatus(t, r, http.StatusCreated)
	hls := into[struct {
		HLS string `json:"hls_url"`
	}](t, r).HLS
	eventually(t, "the stream", func() error { return served(t, hls) })
	gateway, err := url.Parse(s.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := url.Parse(page.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t, gateway.Host, other.Host, "")
	var got struct {
		Text, Language, Label string
		Faults                []string
	}
	if err := chromedp.Run(b.ctx, chromedp.Navigate(page.URL+"/?src="+url.QueryEscape(hls)), chromedp.Evaluate(captioned, &got, awaitPromise)); err != nil {
		t.Fatal(err, b.complaints())
	}
	t.Logf("%+v", got)
	if len(got.Faults) > 0 || got.Language != "en" || got.Label != "English" || !strings.Contains(strings.ToLower(got.Text), "again") && !strings.Contains(strings.ToLower(got.Text), "ever") {
		t.Errorf("%+v", got)
	}
	for _, c := range b.complaints() {
		t.Errorf("hls.js: %s", c)
	}
	own := newTab(t, gateway.Host, "")
	var ours struct {
		Text, Language, Label, After string
		Wide, Covered                bool
	}
	player := strings.Replace(hls, "/index.m3u8?", "/player?autoplay=true&muted=true&", 1)
	if err := chromedp.Run(own.ctx, chromedp.EmulateViewport(390, 700), chromedp.Navigate(player), chromedp.Evaluate(ownCaptioned, &ours, awaitPromise)); err != nil {
		t.Fatal(err, own.complaints())
	}
	t.Logf("%+v", ours)
	if ours.Text == "" || ours.Language != "en" || ours.Label != "English" || ours.Wide || ours.Covered || ours.After != "hidden" {
		t.Errorf("%+v", ours)
	}
	for _, c := range own.complaints() {
		t.Errorf("our page: %s", c)
	}
}
