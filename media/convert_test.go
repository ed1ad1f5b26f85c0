package media_test

import (
	"bytes"
	"image"
	_ "image/jpeg" // of thumbnails
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/files/mp4"
	"sluice.dev/sluice/media/plans"
)

// withFFmpeg gives the product an ffmpeg, and the account a plan with room for a
// film of a megabyte.
func withFFmpeg(t *testing.T) func(*media.Config) {
	t.Helper()
	return func(c *media.Config) {
		c.FFmpeg, c.Scratch = ffmpegtest.Tool(t).Binary, t.TempDir()
		c.Plans = plans.Table{"": {FileBytes: 1 << 20, StorageBytes: 1 << 22}}
	}
}

// send posts bytes to a surface.
func (b *bundle) send(path string, body []byte) answer {
	b.t.Helper()
	return b.do("POST", path, string(body), "Content-Type", "application/octet-stream")
}

func TestSurfacesWithoutAnEngineSaySo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range []string{"/v1/transcribe", "/v1/captions", "/v1/voice", "/v1/render", "/v1/transcode", "/v1/mux"} {
		b.send(path, []byte("bytes")).wantError(501, "not_implemented")
		b.do("POST", path, "bytes", identityheader.Header, "none").wantError(401, "authentication_required")
	}
}

func TestABodyIsConvertedWhileItsSenderWaits(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t))
	real := ffmpegtest.Film(t, "mp4") // 320 by 240 pixels
	small := b.send("/v1/transcode?profile=240p", real).want(200)
	if info, err := mp4.Parse(bytes.NewReader(small.raw), int64(len(small.raw))); err != nil || info.Height != 240 || small.header.Get("Content-Type") != "video/mp4" {
		t.Errorf("%+v, %v", info, err)
	}
	if got := b.send("/v1/mux?format=ts", real).want(200); got.raw[0] != 'G' {
		t.Errorf("no transport stream: %q", got.raw[:4])
	}
	still := b.send("/v1/render?time=1&width=64", real).want(200)
	if c, kind, err := image.DecodeConfig(bytes.NewReader(still.raw)); err != nil || kind != "jpeg" || c.Width != 64 {
		t.Errorf("%s %+v, %v", kind, c, err)
	}
	for name, c := range map[string]struct {
		path string
		body []byte
		code string
		want int
	}{
		"no profile":                {"/v1/transcode", real, "TRANSCODE_002", 400},
		"a profile nobody knows":    {"/v1/transcode?profile=8k", real, "TRANSCODE_002", 400},
		"a larger picture":          {"/v1/transcode?profile=360p", real, "TRANSCODE_003", 400},
		"no film":                   {"/v1/transcode?profile=240p", []byte("hello"), "STORAGE_002", 400},
		"a film of another kind":    {"/v1/mux", ffmpegtest.Film(t, "mpegts"), "STORAGE_002", 400},
		"a film that is none":       {"/v1/transcode?profile=240p", film, "STORAGE_002", 400},
		"too many bytes":            {"/v1/mux", make([]byte, 1<<20+1), "STORAGE_001", 413},
		"a container nobody knows":  {"/v1/mux?format=avi", real, "invalid_request", 400},
		"a time beyond the end":     {"/v1/render?time=3", real, "invalid_request", 400},
		"several mistakes together": {"/v1/render?time=x&width=1&format=gif", real, "invalid_request", 400},
	} {
		if got := b.send(c.path, c.body); got.status != c.want || got.text("error.code") != c.code {
			t.Errorf("%s: %d %s", name, got.status, got.raw)
		}
	}
	b.do("POST", "/v1/mux", object{}).wantError(400, "STORAGE_002")
}

// stalled is a body that does not come before it is let go.
type stalled struct{ asked, let chan struct{} }

func (s stalled) Read([]byte) (int, error) {
	close(s.asked)
	<-s.let
	return 0, http.ErrBodyReadAfterClose
}

func TestAFullRoomTurnsCallersAway(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t), func(c *media.Config) { c.Conversions = 1 })
	first, done := stalled{make(chan struct{}), make(chan struct{})}, make(chan int)
	go func() {
		r, w := b.request("POST", "/v1/mux", first)
		b.handler.ServeHTTP(w, r)
		done <- w.Code
	}()
	<-first.asked
	late := b.send("/v1/mux", film)
	if late.want(503).text("error.code") != "TRANSCODE_001" || late.header.Get("Retry-After") != "30" {
		t.Errorf("%s, %v", late.raw, late.header)
	}
	close(first.let)
	if status := <-done; status != 400 {
		t.Errorf("a body that broke off: %d", status)
	}
}

func TestAVideoIsMadeIntoARendition(t *testing.T) {
	t.Parallel()
	real := ffmpegtest.Film(t, "mp4")
	source, allow := origin(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "film.mp4", time.Time{}, bytes.NewReader(real))
	})
	b := setup(t, withFFmpeg(t), allow)
	id := b.do("POST", "/v1/vod", object{"source_url": source + "/film.mp4", "profile": "240p"}).want(201).text("id")
	all := "/v1/vod/" + id + "/renditions"
	if got := b.do("GET", all, nil).want(200); got.text("data.0.status") != "processing" || got.get("data.0.url") != nil {
		t.Errorf("%s", got.raw)
	}
	b.do("POST", all, object{"profile": "240p"}).wantError(409, "conflict") // not ready yet
	b.work(2)
	got := b.do("GET", all, nil).want(200)
	if got.text("data.0.status") != "ready" || got.text("data.0.resolution") != "320x240" {
		t.Fatalf("%s", got.raw)
	}
	if file := b.fetch(got.text("data.0.url")).want(200); float64(len(file.raw)) != got.get("data.0.file_size") {
		t.Errorf("%d bytes of %v", len(file.raw), got.get("data.0.file_size"))
	}
	if d := b.do("GET", "/v1/vod/"+id+"/downloads", nil).want(200); d.text("data.0.profile") != "source" || d.text("data.1.profile") != "240p" {
		t.Errorf("%s", d.raw)
	}
	b.wantFiles(2)
	b.do("POST", all, object{"profile": "240p"}).wantError(409, "conflict")
	b.do("POST", all, object{"profile": "480p"}).wantError(400, "TRANSCODE_003")
	b.do("POST", all, object{"profile": "8k"}).wantError(400, "TRANSCODE_002", "profile")
	b.as(otherAccount, "POST", all, object{"profile": "240p"}).wantError(404, "not_found")
	b.as(otherAccount, "GET", all, nil).wantError(404, "not_found")
	b.do("DELETE", "/v1/vod/"+id, nil).want(204)
	b.wantFiles(0)
}

func TestARenditionThatCannotBeMadeFails(t *testing.T) {
	t.Parallel()
	real := ffmpegtest.Film(t, "mp4")
	source, allow := origin(t, func(w http.ResponseWriter, r *http.Request) {
		body := real
		if strings.HasSuffix(r.URL.Path, "/none") {
			body = []byte("hello")
		}
		http.ServeContent(w, r, "film.mp4", time.Time{}, bytes.NewReader(body))
	})
	b := setup(t, withFFmpeg(t), allow, func(c *media.Config) { c.QueueLimit = 2 })
	low := b.do("POST", "/v1/vod", object{"source_url": source, "profile": "480p"}).want(201).text("id")
	none := b.do("POST", "/v1/vod", object{"source_url": source + "/none", "profile": "240p"}).want(201).text("id")
	b.do("POST", "/v1/vod", object{"source_url": source, "profile": "240p"}).wantError(503, "TRANSCODE_001")
	b.work(3)
	for id, code := range map[string]string{low: "TRANSCODE_003", none: "STORAGE_002"} {
		got := b.do("GET", "/v1/vod/"+id+"/renditions", nil).want(200)
		if got.text("data.0.status") != "failed" || got.text("data.0.error.code") != code {
			t.Errorf("%s", got.raw)
		}
	}
	if got := b.do("GET", "/v1/vod/"+low, nil).want(200); got.text("status") != "ready" {
		t.Errorf("%s", got.raw)
	}
	b.do("POST", "/v1/vod/"+low+"/renditions", object{"profile": "480p"}).wantError(400, "TRANSCODE_003")
	b.now = b.now.Add(time.Second) // they are listed in the order of time
	b.do("POST", "/v1/vod/"+low+"/renditions", object{"profile": "240p"}).want(202)
	b.work(1)
	if got := b.do("GET", "/v1/vod/"+low+"/renditions", nil).want(200); got.text("data.1.status") != "ready" {
		t.Errorf("%s", got.raw)
	}
}

func TestAThumbnailIsAPictureOutOfTheFile(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t))
	made := b.send("/v1/vod/upload", ffmpegtest.Film(t, "mp4")).want(201)
	address := made.text("thumbnail_url")
	still := b.fetch(address + "&time=1.5&width=100").want(200)
	if c, _, err := image.DecodeConfig(bytes.NewReader(still.raw)); err != nil || c.Width != 100 {
		t.Errorf("%+v, %v", c, err)
	}
	b.fetch(address+"&time=9&width=5").wantError(400, "invalid_request", "time", "width")
	b.fetch(strings.Replace(address, "token=", "token=x", 1)).wantError(401, "invalid_token")
	clip := b.do("POST", "/v1/clips", object{"vod_id": made.text("id"), "start": 1, "duration": 1}).want(201)
	b.work(1)
	b.fetch(b.do("GET", "/v1/clips/"+clip.text("id"), nil).want(200).text("thumbnail_url") + "&time=0.5").want(200)
}

// A picture is made of the seconds around it: a request copies no whole film, and shows
// what the whole film shows there, turned as it says.
func TestAPictureIsMadeOfTheSecondsAroundIt(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t), func(c *media.Config) { c.Plans = plans.Table{"": {FileBytes: 1 << 27, StorageBytes: 1 << 28}} })
	upright := ffmpegtest.Make(t, "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=10:duration=60", "-f", "lavfi", "-i", "sine=duration=60", "-c:v", "libx264", "-preset", "veryfast", "-bf", "2",
		"-b:v", "2M", "-minrate", "2M", "-maxrate", "2M", "-bufsize", "2M", "-x264-params", "nal-hrd=cbr", "-g", "20", "-pix_fmt", "yuv420p")
	turned := filepath.Join(t.TempDir(), "film.mp4")
	if err := os.WriteFile(turned, upright, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, film := range map[string][]byte{
		"whole":      upright,
		"turned":     ffmpegtest.Make(t, "-display_rotation", "90", "-i", turned, "-c", "copy"),
		"fragmented": ffmpegtest.Make(t, "-i", turned, "-c", "copy", "-movflags", "+frag_keyframe+empty_moov"),
	} {
		address := b.send("/v1/vod/upload", film).want(201).text("thumbnail_url")
		for _, at := range []string{"0", "3.95", "4", "27.3", "59.9"} {
			got, want := b.fetch(address+"&width=64&time="+at).want(200).raw, ffmpegtest.Still(t, film, at, 64)
			if !bytes.Equal(got, want) {
				t.Errorf("%s: the picture at %s is another", name, at)
			}
		}
		if copies, err := filepath.Glob(filepath.Join(b.config.Scratch, "sluice-films-*")); err != nil || len(copies) > 0 {
			t.Errorf("%s: whole films are copied: %v, %v", name, copies, err)
		}
		b.without(`n BETWEEN 2 AND 4`) // of some 15, from 9 to 20 seconds
		b.fetch(address + "&width=65&time=27.3").want(200)
		if got := b.fetch(address + "&width=65&time=15"); got.status == 200 {
			t.Errorf("%s: a picture of bytes that are not there", name)
		}
	}
}

// without takes chunks of all files away.
func (b *bundle) without(which string) {
	b.t.Helper()
	if _, err := b.pool.Exec(b.t.Context(), `DELETE FROM media_chunks WHERE `+which); err != nil {
		b.t.Fatal(err)
	}
}

// A viewer who asks for many pictures of a film of a codec of its own has it copied once,
// and a film that is too large has none.
func TestAFilmIsCopiedOnceForAllItsPictures(t *testing.T) {
	t.Parallel()
	real := ffmpegtest.Make(t, "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=10:duration=2", "-c:v", "mpeg4")
	b := setup(t, withFFmpeg(t), func(c *media.Config) { c.StillBytes = int64(len(real)) })
	made := b.send("/v1/vod/upload", real).want(201)
	b.fetch(made.text("thumbnail_url")).want(200)
	b.without(`true`)
	b.fetch(made.text("thumbnail_url") + "&time=1").want(200)
	large := setup(t, withFFmpeg(t), func(c *media.Config) { c.StillBytes = int64(len(real)) - 1 })
	if got := large.send("/v1/vod/upload", real).want(201); got.get("thumbnail_url") != nil {
		t.Errorf("%s", got.raw)
	} else if link := strings.Replace(got.text("playback_url"), "?", "/thumbnail.jpg?", 1); true {
		large.fetch(link).wantError(413, "STORAGE_001")
	}
}

func TestChaptersDivideAFilm(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.upload() // of 60 seconds
	all := "/v1/vod/" + id + "/chapters"
	second := b.do("POST", all, object{"title": "Rolling", "start": 20.5}).want(201)
	if second.get("end") != 60.0 {
		t.Errorf("%s", second.raw)
	}
	first := b.do("POST", all, object{"title": "Intro", "start": 0}).want(201)
	if first.get("end") != 20.5 {
		t.Errorf("%s", first.raw)
	}
	b.do("POST", all, object{"title": "Again", "start": 20.5}).wantError(409, "conflict")
	b.do("POST", all, object{"title": "", "start": 60}).wantError(400, "invalid_request", "title", "start")
	b.do("POST", all, object{"title": "No time"}).wantError(400, "invalid_request", "start")
	b.do("POST", all, object{"title": "Before", "start": -1}).wantError(400, "invalid_request", "start")
	if got := b.do("GET", all, nil).want(200); got.text("data.0.title") != "Intro" || got.text("data.1.title") != "Rolling" {
		t.Errorf("%s", got.raw)
	}
	b.as(otherAccount, "GET", all, nil).wantError(404, "not_found")
	b.as(otherAccount, "DELETE", all+"/"+first.text("id"), nil).wantError(404, "not_found")
	b.do("DELETE", all+"/"+second.text("id"), nil).want(204)
	b.do("DELETE", all+"/"+second.text("id"), nil).wantError(404, "not_found")
	if got := b.do("GET", all, nil).want(200); got.get("data.0.end") != 60.0 || got.get("data.1") != nil {
		t.Errorf("%s", got.raw)
	}
	b.do("DELETE", "/v1/vod/"+id, nil).want(204)
}
