//go:build browser && clients

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// awaitPromise has an evaluation wait for what its promise becomes.
func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// dashPage plays a manifest with dash.js on somebody else's page.
const dashPage = `<!doctype html><title>dash.js</title><main><video muted autoplay playsinline></video></main><script src="/script.js"></script>
<script>
const faults = [], video = document.querySelector("video"), player = dashjs.MediaPlayer().create();
player.on(dashjs.MediaPlayer.events.ERROR, e => faults.push(e.error.code + " " + e.error.message));
player.initialize(video, new URLSearchParams(location.search).get("mpd"), true);
</script>`

// moving waits until the page's video has shown seconds of moving pictures, and returns
// how much a picture of it varies: 0 is a blank one.
const moving = `new Promise((done, failed) => {
	const video = document.querySelector("video"), from = video.currentTime;
	video.addEventListener("timeupdate", () => {
		if (video.currentTime - from < %d || !video.videoWidth) return;
		const c = Object.assign(document.createElement("canvas"), {width: 32, height: 18}), paint = c.getContext("2d");
		paint.drawImage(video, 0, 0, 32, 18);
		const bytes = paint.getImageData(0, 0, 32, 18).data;
		done({width: video.videoWidth, height: video.videoHeight, colours: new Set(bytes).size, faults: window.faults || []});
	});
	setTimeout(() => failed(new Error("nothing is shown: at " + video.currentTime + ", " + JSON.stringify(window.faults || document.querySelector(".say")?.textContent))), 60000);
})`

// pictureSeen is what moving finds.
type pictureSeen struct {
	Width, Height, Colours int
	Faults                 []string
}

// wantShown fails unless the page shows a moving picture of this size.
func (b *tab) wantShown(t *testing.T, what string, width, height, seconds int) {
	t.Helper()
	var got pictureSeen
	if err := chromedp.Run(b.ctx, chromedp.Evaluate(fmt.Sprintf(moving, seconds), &got, awaitPromise)); err != nil {
		t.Fatal(what, err, b.complaints())
	}
	if got.Width != width || got.Height != height || got.Colours < 10 || len(got.Faults) > 0 {
		t.Errorf("%s: %+v", what, got)
	}
}

// delay is how far dash.js is behind the present, and wants to be, in seconds.
type delay struct{ Latency, Target float64 }

// behind is that of the page's player.
func (b *tab) behind(t *testing.T) (d delay) {
	t.Helper()
	if err := chromedp.Run(b.ctx, chromedp.Evaluate(`({latency: player.getCurrentLiveLatency(), target: player.getTargetLiveDelay()})`, &d)); err != nil {
		t.Fatal(err)
	}
	return d
}

// playerPage is a page of its own with a script of a package, installed as its lock file
// says.
func playerPage(t *testing.T, markup string, script ...string) *httptest.Server {
	t.Helper()
	dir := installed(t, "browser", "package-lock.json", []string{"npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"})
	code, err := os.ReadFile(filepath.Join(append([]string{dir, "node_modules"}, script...)...))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/script.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write(code)
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(markup))
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// served is an error unless there is something at an address.
func served(t *testing.T, address string) error {
	if r := call(t, http.MethodGet, address, "", nil); r.StatusCode != http.StatusOK {
		return fmt.Errorf("%d %s", r.StatusCode, r.body)
	}
	return nil
}

// What is published is seen in a browser: by DASH with dash.js on another's page, by
// HLS and by WebRTC on the product's own.
func TestClientsBrowserPlayback(t *testing.T) {
	s, page := studio(t), playerPage(t, dashPage, "dashjs", "dist", "modern", "umd", "dash.all.min.js")
	key := s.dev["SLUICE_API_KEY"]
	made := s.createShow(t, key, map[string]any{"playback_policy": "signed", "recording": map[string]any{"enabled": true}})
	publisher := publish(t, made, made.Ingest.RTMP.Key, picture)
	r := call(t, http.MethodPost, s.url("/v1/streams/"+made.ID+"/tokens"), key, map[string]any{"viewer": "one"})
	wantStatus(t, r, http.StatusCreated)
	token := into[struct {
		DASH  string `json:"dash_url"`
		Low   string `json:"low_latency_dash_url"`
		Embed string `json:"embed_url"`
	}](t, r)
	eventually(t, "the manifest", func() error { return served(t, token.DASH) })
	gateway, err := url.Parse(s.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := url.Parse(page.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t, gateway.Host, other.Host, "")
	if err := chromedp.Run(b.ctx, chromedp.Navigate(page.URL+"/?mpd="+url.QueryEscape(token.DASH))); err != nil {
		t.Fatal(err)
	}
	b.wantShown(t, "DASH", 320, 180, 5)
	plain := b.behind(t)
	for _, c := range b.complaints() {
		t.Errorf("DASH: %s", c)
	}
	if err := chromedp.Run(b.ctx, chromedp.Navigate(page.URL+"/?mpd="+url.QueryEscape(token.Low))); err != nil {
		t.Fatal(err)
	}
	b.wantShown(t, "DASH of low latency", 320, 180, 20)
	low := b.behind(t)
	for _, c := range b.complaints() {
		t.Errorf("DASH of low latency: %s", c)
	}
	if low.Target <= 0 || low.Target >= plain.Target {
		t.Errorf("players are to be %g s behind by DASH, %g s by that of low latency", plain.Target, low.Target)
	}
	t.Logf("behind the moment at which the engine had the picture: %.2f s by DASH, %.2f s by that of low latency", plain.Latency, low.Latency)
	if err := chromedp.Run(b.ctx, chromedp.Navigate(token.Embed+"&autoplay=true&muted=true")); err != nil {
		t.Fatal(err)
	}
	b.wantShown(t, "HLS", 320, 180, 2)
	if err := chromedp.Run(b.ctx, chromedp.Click(`.way`, chromedp.ByQuery)); err != nil {
		t.Fatal(err)
	}
	b.wantShown(t, "WebRTC", 320, 180, 2)
	for _, c := range b.complaints() {
		t.Errorf("the player: %s", c)
	}
	publisher.Kill()
	recorded := s.recordedDASH(t, key, made)
	if err := chromedp.Run(b.ctx, chromedp.Navigate(page.URL+"/?mpd="+url.QueryEscape(recorded))); err != nil {
		t.Fatal(err)
	}
	b.wantShown(t, "the recording by DASH", 320, 180, 5)
	for _, c := range b.complaints() {
		t.Errorf("the recording by DASH: %s", c)
	}
}

// recordedDASH is the manifest of a stream's recording, once it is ready.
func (s *stack) recordedDASH(t *testing.T, key string, of show) (address string) {
	t.Helper()
	eventually(t, "the recording", func() error {
		r := call(t, http.MethodGet, s.url("/v1/recordings?status=ready&stream_id="+of.ID), key, nil)
		list := into[struct {
			Data []struct {
				DASH string `json:"dash_url"`
			}
		}](t, r)
		if len(list.Data) == 0 {
			return fmt.Errorf("%d %s", r.StatusCode, r.body)
		}
		address = list.Data[0].DASH
		return nil
	})
	return address
}
