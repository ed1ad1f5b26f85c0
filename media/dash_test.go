package media_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Eyevinn/dash-mpd/mpd"
	"github.com/bluenviron/gohlslib/v2/pkg/playlist"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/live/engine/enginetest"
)

// theatre is a product with a real engine, and a server of what it answers.
type theatre struct {
	*bundle
	engine enginetest.Engine
	url    string // of the product
}

func newTheatre(t *testing.T) theatre {
	t.Helper()
	e := enginetest.Start(t)
	b := setup(t, func(c *media.Config) { c.EngineHLS, c.Now = e.HLS, time.Now })
	s := httptest.NewServer(b.handler)
	t.Cleanup(s.Close)
	b.now = time.Now()
	return theatre{b, e, s.URL}
}

// broadcast is a stream to which ffmpeg sends. It returns the addresses that the
// product shows, at the test's server.
func (h theatre) broadcast(fields object, args ...string) (show answer, hls, dash string) {
	h.t.Helper()
	fields["title"] = "Show"
	show = h.do("POST", "/v1/streams", fields).want(201)
	h.engine.Publish(h.t, show.text("playback_id"), args...)
	return show, h.here(show.text("playback.hls_url")), h.here(show.text("playback.dash_url"))
}

// here is an address of the product at the test's server.
func (h theatre) here(address string) string {
	return h.url + strings.TrimPrefix(address, "http://127.0.0.1:8080")
}

// load gets an address as a player does.
func (h theatre) load(address string) (status int, body string) {
	h.t.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("User-Agent", "a player")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// wait loads an address until it is there.
func (h theatre) wait(address string) string {
	h.t.Helper()
	var status int
	var body string
	await(h.t, func() bool {
		status, body = h.load(address)
		return status == http.StatusOK
	})
	return body
}

// manifest loads a manifest.
func (h theatre) manifest(address string) *mpd.MPD {
	h.t.Helper()
	m, err := mpd.ReadFromString(h.wait(address))
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

// playlistOf loads a playlist of HLS.
func (h theatre) playlistOf(address string) *playlist.Media {
	h.t.Helper()
	var list playlist.Media
	if err := list.Unmarshal([]byte(h.wait(address))); err != nil {
		h.t.Fatal(err)
	}
	return &list
}

// played is what ffmpeg decodes of a manifest, as lines of framecrc: the first number
// of each says of which track.
func (h theatre) played(address string, args ...string) string {
	h.t.Helper()
	all := slices.Concat([]string{"-nostdin", "-hide_banner", "-loglevel", "error", "-i", address, "-map", "0"}, args, []string{"-fps_mode", "passthrough", "-f", "framecrc", "-"})
	out, err := exec.CommandContext(h.t.Context(), ffmpegtest.Tool(h.t).Binary, all...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// Whatever is sent is played: by its tracks, whichever they are.
func TestLiveStreamsPlayByDASH(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	h265 := []string{"-c:v", "libx265", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p", "-g", "15", "-x265-params", "log-level=none"}
	vp9 := []string{"-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", "15", "-b:v", "300k"}
	cases := map[string]struct {
		args   []string
		codecs string // of its tracks
		tracks int
	}{
		"pictures and sound": {slices.Concat(enginetest.Card, enginetest.Tone, enginetest.H264, enginetest.AAC), `avc1\.42C00C mp4a\.40\.2`, 2},
		"sound":              {slices.Concat(enginetest.Tone, enginetest.AAC), `mp4a\.40\.2`, 1},
		"pictures":           {slices.Concat(enginetest.Card, h265), `h[ev][vc]1\.1\.6\.L\d+\.90`, 1},
		"VP9":                {slices.Concat(enginetest.Card, vp9), `vp09\.00\.\d\d\.08`, 1},
	}
	for name, c := range cases {
		_, _, dash := h.broadcast(object{}, c.args...)
		m := h.manifest(dash)
		var codecs []string
		for _, set := range m.Periods[0].AdaptationSets {
			rep := set.Representations[0]
			codecs = append(codecs, rep.Codecs)
			if rep.Bandwidth < 1000 || (set.ContentType == "video") != (rep.Width == 320 && rep.Height == 180) || string(set.MimeType) != string(set.ContentType)+"/mp4" {
				t.Errorf("%s: %+v", name, rep)
			}
		}
		if got := strings.Join(codecs, " "); !regexp.MustCompile("^" + c.codecs + "$").MatchString(got) {
			t.Errorf("%s: %s", name, got)
		}
		shown := h.played(dash, "-t", "2")
		for track := range c.tracks {
			if n := strings.Count(shown, fmt.Sprintf("\n%d, ", track)); n < 20 {
				t.Errorf("%s: %d frames of track %d\n%s", name, n, track, shown)
			}
		}
	}
}

// The manifest names the playlist's segments, says of each the same time of day, and
// counts the same viewer.
func TestDASHAndHLSAreOneStream(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	show, hls, dash := h.broadcast(object{"playback_policy": "signed"}, slices.Concat(enginetest.Card, enginetest.Tone, enginetest.H264, enginetest.AAC)...)
	h.fetch(show.text("playback.dash_url")).wantError(401, "invalid_token")
	token := h.do("POST", "/v1/streams/"+show.text("id")+"/tokens", object{}).want(201)
	if token.text("dash_url") != show.text("playback.dash_url")+"?token="+token.text("token") {
		t.Errorf("%s", token.raw)
	}
	signed := "?token=" + token.text("token")
	list, m := h.playlistOf(strings.Replace(hls, "index", "video1_stream", 1)+signed), h.manifest(dash+signed)
	period := m.Periods[0]
	video := period.AdaptationSets[0].Representations[0].SegmentTemplate
	oldest := int(*video.StartNumber)
	first, at := oldest, map[string]time.Time{}
	start := time.Unix(0, 0).Add(time.Duration(*period.Start))
	if m.AvailabilityStartTime != "1970-01-01T00:00:00Z" || time.Since(start) < 0 || time.Since(start) > time.Hour {
		t.Errorf("from %s: %s", m.AvailabilityStartTime, start)
	}
	var ticks uint64
	for _, s := range video.SegmentTimeline.S {
		if s.T != nil {
			ticks = *s.T
		}
		for range s.R + 1 {
			at[strings.Replace(video.Media, "$Number$", fmt.Sprint(first), 1)] = start.Add(time.Duration(ticks) * time.Second / time.Duration(*video.Timescale))
			ticks, first = ticks+s.D, first+1
		}
	}
	agreed := 0
	for _, s := range list.Segments {
		if when, ok := at[s.URI]; ok && s.DateTime != nil {
			agreed++
			if off := s.DateTime.Sub(when).Abs(); off > 100*time.Millisecond {
				t.Errorf("%s: %s by HLS, %s by DASH", s.URI, s.DateTime, when)
			}
		}
	}
	if agreed == 0 {
		t.Errorf("%v\n%v", at, list.Segments)
	}
	base := dash[:strings.LastIndex(dash, "/")+1]
	name := strings.Replace(video.Media, "$Number$", fmt.Sprint(first-1), 1)
	if status, body := h.load(base + name); status != 200 || body[4:8] != "moof" {
		t.Errorf("%s: %d", name, status)
	}
	if status, _ := h.load(base + strings.Split(name, "?")[0]); status != 401 {
		t.Errorf("without the token: %d", status)
	}
	if status, _ := h.load(base + strings.Replace(video.Media, "$Number$", "9999", 1)); status != 404 {
		t.Errorf("a segment that is not there: %d", status)
	}
	views := h.do("GET", "/v1/analytics/views?interval=hour&stream_id="+show.text("id"), nil).want(200)
	if views.get("totals.views") != 1.0 || views.get("totals.unique_viewers") != 1.0 {
		t.Errorf("%s", views.raw)
	}
	h.played(dash+signed, "-t", "9")
	later := h.manifest(dash + signed).Periods[0]
	if *later.Start != *period.Start || int(*later.AdaptationSets[0].Representations[0].SegmentTemplate.StartNumber) <= oldest {
		t.Errorf("nothing has fallen off: %+v", later.AdaptationSets[0].Representations[0].SegmentTemplate)
	}
	if status, _ := h.load(base + strings.Replace(video.Media, "$Number$", fmt.Sprint(oldest), 1)); status != 404 {
		t.Errorf("a segment that has fallen off: %d", status)
	}
}
