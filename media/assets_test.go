package media_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/files/mp4/mp4test"
	"sluice.dev/sluice/media/transcribe"
)

// film is a file of 60 seconds; the plan of the tests takes 4096 bytes a file.
var film = mp4test.Spec{Millis: 60_000, Width: 1280, Height: 720, Video: "avc1", Audio: "mp4a", Padding: 500}.File()

// origin serves body at every path until the test ends. The product may call it.
func origin(t *testing.T, h http.HandlerFunc) (url string, allow func(*media.Config)) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, func(c *media.Config) { c.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }
}

func filmOrigin(t *testing.T) (string, func(*media.Config)) {
	t.Helper()
	return origin(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "film.mp4", time.Time{}, bytes.NewReader(film))
	})
}

// work runs the product's jobs until n attempts have ended.
func (b *bundle) work(n int) {
	b.t.Helper()
	workers := river.NewWorkers()
	media.AddWorkers(workers, b.config)
	client, err := river.NewClient(riverpgxv5.New(b.pool), &river.Config{
		Queues: map[string]river.QueueConfig{assets.Queue: {MaxWorkers: 2}, assets.TranscodeQueue: {MaxWorkers: 1}, assets.CutQueue: {MaxWorkers: 1}, transcribe.Queue: {MaxWorkers: 1}}, Workers: workers, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.t.Fatal(err)
	}
	ended, cancel := client.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed)
	defer cancel()
	if err := client.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	for range n {
		<-ended
	}
	if err := client.Stop(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// upload stores the film and returns its id.
func (b *bundle) upload() string { return b.uploadOf(film) }

// uploadOf stores a film and returns its id.
func (b *bundle) uploadOf(film []byte) string {
	b.t.Helper()
	return b.do("POST", "/v1/vod/upload?title=Film", string(film), "Content-Type", "video/mp4").want(201).text("id")
}

// fetch gets an address that the product has given out.
func (b *bundle) fetch(url string, headers ...string) answer {
	b.t.Helper()
	_, path, ok := strings.Cut(url, "/v1/")
	if !ok {
		b.t.Fatalf("not an address of ours: %s", url)
	}
	path, _, _ = strings.Cut(path, "#")
	return b.do("GET", "/v1/"+path, nil, append(headers, identityheader.Header, "none")...)
}

func TestAVideoIsFetchedAndServed(t *testing.T) {
	t.Parallel()
	source, allow := filmOrigin(t)
	b := setup(t, allow)
	made := b.do("POST", "/v1/vod", object{"source_url": source + "/film.mp4", "metadata": object{"a": "b"}}).want(201)
	id := made.text("id")
	if made.text("state") != "processing" || made.text("title") != "film.mp4" || made.get("playback_url") != nil {
		t.Errorf("%s", made.raw)
	}
	if none := b.do("GET", "/v1/vod/"+id+"/downloads", nil).want(200); len(none.get("data").([]any)) != 0 {
		t.Errorf("%s", none.raw)
	}
	b.work(1)
	ready := b.do("GET", "/v1/vod/"+id, nil).want(200)
	if ready.text("state") != "ready" || ready.get("duration") != 60.0 || ready.text("resolution") != "1280x720" || ready.get("file_size") != float64(len(film)) {
		t.Errorf("%s", ready.raw)
	}
	link := b.do("GET", "/v1/vod/"+id+"/downloads", nil).want(200).text("data.0.url")
	if got := b.fetch(link).want(200); !bytes.Equal(got.raw, film) || got.header.Get("Content-Type") != "video/mp4" {
		t.Errorf("%d bytes of %s", len(got.raw), got.header.Get("Content-Type"))
	}
	if part := b.fetch(link, "Range", "bytes=4-7").want(206); string(part.raw) != "ftyp" {
		t.Errorf("%q", part.raw)
	}
	if e := b.events(); len(e) != 1 || e[0].Type != "vod.ready" || e[0].Data["vod_id"] != id {
		t.Errorf("%+v", e)
	}
	b.do("DELETE", "/v1/vod/"+id, nil).want(204)
	b.fetch(link).wantError(404, "not_found")
	b.wantFiles(0)
}

// wantFiles fails unless so many files are stored.
func (b *bundle) wantFiles(n int) {
	b.t.Helper()
	var have int
	if err := b.pool.QueryRow(b.t.Context(), `SELECT count(*) FROM media_files`).Scan(&have); err != nil || have != n {
		b.t.Errorf("%d files, want %d (%v)", have, n, err)
	}
}

func TestSignedAddressesEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.upload()
	link := b.do("GET", "/v1/vod/"+id, nil).want(200).text("playback_url")
	other := b.upload()
	b.fetch(strings.Replace(link, id, other, 1)).wantError(401, "invalid_token")
	b.fetch("/v1/playback/files/"+id+"?token=x").wantError(401, "invalid_token")
	b.fetch(link, "Range", "bytes=0-0").want(206)
	b.now = b.now.Add(6*time.Hour + time.Second)
	b.fetch(link).wantError(401, "AUTH_001")
}

func TestSourcesThatFailSayWhy(t *testing.T) {
	t.Parallel()
	source, allow := origin(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gone.mp4":
			http.NotFound(w, r)
		case "/page.mp4":
			_, _ = w.Write([]byte("<html>sign in first</html>"))
		case "/large.mp4":
			_, _ = w.Write(mp4test.Spec{Padding: 5000}.File())
		}
	})
	b := setup(t, allow)
	cases := map[string]string{"/gone.mp4": "bad_gateway", "/page.mp4": "STORAGE_002", "/large.mp4": "STORAGE_001", "/empty.mp4": "STORAGE_002"}
	ids := map[string]string{}
	for path := range cases {
		ids[path] = b.do("POST", "/v1/vod", object{"source_url": source + path}).want(201).text("id")
	}
	b.work(len(cases))
	for path, code := range cases {
		got := b.do("GET", "/v1/vod/"+ids[path], nil).want(200)
		if got.text("status") != "failed" || got.text("error.code") != code || got.text("error.message") == "" {
			t.Errorf("%s: %s", path, got.raw)
		}
	}
	b.wantFiles(0)
	if n := b.do("GET", "/v1/vod?status=failed", nil).want(200).get("pagination.total"); n != 4.0 {
		t.Errorf("%v failed", n)
	}
}

func TestASourceThatIsDownIsTriedAgainThenGivenUp(t *testing.T) {
	t.Parallel()
	source, allow := origin(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	b := setup(t, allow)
	id := b.do("POST", "/v1/vod", object{"source_url": source + "/film.mp4"}).want(201).text("id")
	b.work(1)
	if s := b.do("GET", "/v1/vod/"+id, nil).want(200).text("status"); s != "processing" {
		t.Errorf("%s after the first attempt", s)
	}
	if _, err := b.pool.Exec(t.Context(), `UPDATE river_job SET attempt = max_attempts - 1, state = 'available', scheduled_at = now()`); err != nil {
		t.Fatal(err)
	}
	b.work(1)
	if got := b.do("GET", "/v1/vod/"+id, nil).want(200); got.text("error.code") != "bad_gateway" {
		t.Errorf("%s", got.raw)
	}
}

func TestVideosThatAreRefused(t *testing.T) {
	t.Parallel()
	source, allow := filmOrigin(t)
	b := setup(t, allow, func(c *media.Config) { c.QueueLimit = 1 })
	b.do("POST", "/v1/vod", object{"source_url": "http://10.0.0.1/film.mp4", "title": "x"}).wantError(400, "invalid_request", "source_url")
	b.do("POST", "/v1/vod", object{"title": " "}).wantError(400, "invalid_request", "source_url")
	b.do("POST", "/v1/vod", object{"source_url": source, "profile": "8k"}).wantError(400, "TRANSCODE_002", "profile")
	b.do("POST", "/v1/vod", object{"source_url": source, "profile": "1080p"}).wantError(501, "not_implemented")
	b.do("POST", "/v1/vod", object{"source_url": source}).want(201)
	full := b.do("POST", "/v1/vod", object{"source_url": source})
	full.wantError(503, "TRANSCODE_001")
	if full.header.Get("Retry-After") != "30" {
		t.Error("no Retry-After")
	}
}

func TestUploadsAreBoundedAndMustBeVideos(t *testing.T) {
	t.Parallel()
	b := setup(t)
	post := func(body string) answer {
		return b.do("POST", "/v1/vod/upload", body, "Content-Type", "application/octet-stream")
	}
	large := string(mp4test.Spec{Padding: 5000}.File())
	post(large).wantError(413, "STORAGE_001")
	r := httptest.NewRequest("POST", "/v1/vod/upload", struct{ *strings.Reader }{strings.NewReader(large)})
	r.ContentLength = -1 // chunked: the size is not known beforehand
	r.Header.Set(identityheader.Header, identityheader.Sign(secret, identityheader.Caller{Account: "acct_1"}, b.now.Unix()))
	w := httptest.NewRecorder()
	if b.handler.ServeHTTP(w, r); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("chunked: %d %s", w.Code, w.Body)
	}
	post("GIF89a, which moves but is no video").wantError(400, "STORAGE_002")
	post(string(film[:len(film)-1])).wantError(400, "STORAGE_002")
	b.do("POST", "/v1/vod/upload?title=%00", string(film)).wantError(400, "invalid_request", "title")
	b.wantFiles(0)
}

func TestTheQuotaWarnsAndThenRefuses(t *testing.T) {
	t.Parallel()
	source, allow := filmOrigin(t)
	b := setup(t, allow) // 10,000 bytes
	size := len(film)
	n := 0
	for ; (n+1)*size <= 10_000; n++ {
		b.upload()
	}
	b.do("POST", "/v1/vod/upload", string(film)).wantError(403, "BILLING_002")
	r, w := b.request("POST", "/v1/vod/upload", bytes.NewReader(film))
	r.ContentLength = -1 // chunked: it gets what is left, which is too little
	if b.handler.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("chunked: %d %s", w.Code, w.Body)
	}
	late := b.do("POST", "/v1/vod", object{"source_url": source}).want(201).text("id") // its size is not known yet
	b.work(1)
	if got := b.do("GET", "/v1/vod/"+late, nil).want(200); got.text("error.code") != "BILLING_002" {
		t.Errorf("%s", got.raw)
	}
	b.wantFiles(n)
	warnings := strings.Count(b.eventTypes(), "billing.usage_warning")
	if warnings == 0 || warnings > 3 {
		t.Errorf("%d warnings in %s", warnings, b.eventTypes())
	}
}

func TestAssetsOfOthersAreNotThere(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t))
	id := b.upload()
	other := identityheader.Caller{Account: "acct_2"}
	b.as(other, "GET", "/v1/vod/"+id, nil).wantError(404, "not_found")
	b.as(other, "DELETE", "/v1/vod/"+id, nil).wantError(404, "not_found")
	b.as(other, "GET", "/v1/vod/"+id+"/downloads", nil).wantError(404, "not_found")
	b.as(other, "POST", "/v1/clips", object{"vod_id": id, "duration": 5}).wantError(400, "invalid_request", "vod_id")
	if n := b.as(other, "GET", "/v1/vod", nil).want(200).get("pagination.total"); n != 0.0 {
		t.Errorf("another account sees %v videos", n)
	}
	b.do("GET", "/v1/clips/"+id, nil).wantError(404, "not_found")
	b.do("GET", "/v1/recordings/"+id, nil).wantError(404, "not_found")
	b.do("GET", "/v1/recordings?status=melted&limit=x", nil).wantError(400, "invalid_request", "status", "limit")
}

// A clip is its part of the source and nothing else, and outlives it.
func TestAClipIsCut(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t))
	whole := ffmpegtest.Film(t, "mp4") // two seconds, a whole picture every second
	video := b.uploadOf(whole)
	clip := b.do("POST", "/v1/clips", object{"vod_id": video, "start": 1, "duration": 0.5, "title": "Goal"}).want(201)
	if clip.text("status") != "processing" || clip.get("duration") != 0.5 || clip.get("end") != 1.5 || clip.text("source_id") != video || clip.get("playback_url") != nil {
		t.Errorf("%s", clip.raw)
	}
	exact := b.do("POST", "/v1/clips", object{"vod_id": video, "start": 0.7, "duration": 0.5, "precise": true}).want(201)
	b.do("POST", "/v1/clips", object{"vod_id": video, "start": 1, "end": 2.1}).wantError(400, "invalid_request", "end")
	b.do("DELETE", "/v1/vod/"+video, nil).want(204) // its bytes stay until they are cut
	b.work(2)
	b.wantFiles(2)
	for name, id := range map[string]string{"copied": clip.text("id"), "precise": exact.text("id")} {
		got := b.do("GET", "/v1/clips/"+id, nil).want(200)
		link := got.text("playback_url")
		bytes := b.fetch(link).want(200).raw
		if info := ffmpegtest.Look(t, bytes); got.text("status") != "ready" || strings.Contains(link, "#") || len(bytes) > len(whole)*2/3 ||
			info.Seconds < 0.4 || info.Seconds > 0.7 || info.Frames < 4 || info.Frames > 6 {
			t.Errorf("%s: %d of %d bytes, %+v, %s", name, len(bytes), len(whole), info, got.raw)
		}
		b.do("DELETE", "/v1/clips/"+id, nil).want(204)
	}
	b.wantFiles(0)
	if b.eventTypes() != "vod.ready clip.created clip.created" {
		t.Error(b.eventTypes())
	}
}

func TestAClipWaitsForItsSource(t *testing.T) {
	t.Parallel()
	source, allow := origin(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "film.mp4", time.Time{}, bytes.NewReader(ffmpegtest.Film(t, "mp4")))
	})
	b := setup(t, allow, withFFmpeg(t))
	video := b.do("POST", "/v1/vod", object{"source_url": source}).want(201).text("id")
	doomed := b.do("POST", "/v1/vod", object{"source_url": source}).want(201).text("id")
	good := b.do("POST", "/v1/clips", object{"vod_id": video, "end": 2}).want(201)
	long := b.do("POST", "/v1/clips", object{"vod_id": video, "end": 2.5}).want(201)
	orphan := b.do("POST", "/v1/clips", object{"vod_id": doomed, "end": 1}).want(201)
	if good.text("status") != "processing" {
		t.Errorf("%s", good.raw)
	}
	b.do("DELETE", "/v1/vod/"+doomed, nil).want(204)
	b.work(3)
	for clip, want := range map[string]string{good.text("id"): "ready", long.text("id"): "failed", orphan.text("id"): "failed"} {
		if got := b.do("GET", "/v1/clips/"+clip, nil).want(200); got.text("status") != want {
			t.Errorf("want %s: %s", want, got.raw)
		}
	}
	b.wantFiles(2)
}

// An account has so many clips waiting at most, also of a source that is not ready: they
// would all be due at once.
func TestClipsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	source, allow := filmOrigin(t)
	b := setup(t, allow, withFFmpeg(t), func(c *media.Config) { c.OwnerLimit = 2 })
	video := b.do("POST", "/v1/vod", object{"source_url": source}).want(201).text("id")
	for range 2 {
		b.do("POST", "/v1/clips", object{"vod_id": video, "end": 1}).want(201)
	}
	b.do("POST", "/v1/clips", object{"vod_id": video, "end": 1}).wantError(503, "TRANSCODE_001")
}

// What ffmpeg cannot cut fails, and leaves the source as it is.
func TestAClipThatCannotBeCutFails(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t))
	id := b.do("POST", "/v1/clips", object{"vod_id": b.upload(), "duration": 1}).want(201).text("id") // a film without pictures
	b.work(1)
	if got := b.do("GET", "/v1/clips/"+id, nil).want(200); got.text("status") != "failed" || got.text("error.code") != "STORAGE_002" {
		t.Errorf("%s", got.raw)
	}
	b.wantFiles(1)
	bare := setup(t)
	bare.do("POST", "/v1/clips", object{"vod_id": bare.upload(), "duration": 1}).wantError(501, "not_implemented")
}

// A clip of before shares its source's file and says its place in it.
func TestAClipOfBeforeNamesItsPart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	video := b.upload()
	if _, err := b.pool.Exec(t.Context(), `INSERT INTO media_assets (id, owner, account, kind, title, status, source_url, source_id, stream_id, session_id, start_ms, end_ms, file_id,
			format, duration_ms, width, height, video_codec, audio_codec, file_size, error_code, error_message, metadata, created_at, updated_at)
		SELECT 'clip_' || substr(id, 5), owner, account, 'clip', 'Old', status, '', id, '', '', 10000, 15500, file_id,
			format, 5500, width, height, video_codec, audio_codec, 0, '', '', metadata, created_at, updated_at FROM media_assets WHERE id = $1`, video); err != nil {
		t.Fatal(err)
	}
	link := b.do("GET", "/v1/clips/clip_"+video[4:], nil).want(200).text("playback_url")
	if got := b.fetch(link).want(200); !strings.HasSuffix(link, "#t=10,15.5") || !bytes.Equal(got.raw, film) {
		t.Error(link)
	}
}

func TestAPayingAgentCutsAClipOfAnAddress(t *testing.T) {
	t.Parallel()
	source, allow := origin(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "film.mp4", time.Time{}, bytes.NewReader(ffmpegtest.Film(t, "mp4")))
	})
	b := setup(t, allow, withFFmpeg(t))
	agent := identityheader.Caller{Key: "pay_1"}
	id := b.as(agent, "POST", "/v1/clips", object{"source_url": source, "start": 1, "duration": 1}).want(201).text("id")
	b.as(agent, "POST", "/v1/clips", object{"duration": 0, "title": strings.Repeat("x", 201)}).wantError(400, "invalid_request", "source", "duration", "title")
	b.as(agent, "POST", "/v1/clips", object{"stream_id": "strm_x", "duration": 1}).wantError(409, "conflict")
	b.work(2)
	got := b.as(agent, "GET", "/v1/clips/"+id, nil).want(200)
	if got.text("status") != "ready" || b.as(agent, "GET", "/v1/clips/"+id+"/downloads", nil).want(200).text("data.0.url") == "" {
		t.Errorf("%s", got.raw)
	}
	b.wantFiles(1)
	if b.eventTypes() != "" {
		t.Error(b.eventTypes())
	}
}

func TestAVideoThatIsDeletedWhileItIsFetchedLeavesNothing(t *testing.T) {
	t.Parallel()
	var b *bundle
	var id string
	source, allow := origin(t, func(w http.ResponseWriter, r *http.Request) {
		b.do("DELETE", "/v1/vod/"+id, nil).want(204)
		http.ServeContent(w, r, "film.mp4", time.Time{}, bytes.NewReader(film))
	})
	b = setup(t, allow)
	id = b.do("POST", "/v1/vod", object{"source_url": source}).want(201).text("id")
	b.work(1)
	b.wantFiles(0)
	if b.eventTypes() != "" {
		t.Error(b.eventTypes())
	}
}

func TestUpkeepDropsWhatOthersLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	kept := b.upload()
	for _, sql := range []string{
		`INSERT INTO media_files (id, owner, size, complete, created_at) VALUES ('file_dead', 'acct_1', 0, false, $1::timestamptz - interval '25 hours')`,
		`INSERT INTO media_views (owner, subject, viewer, hour, first_at, last_at) SELECT 'acct_' || n % 3, 'strm_1', decode(md5(n::text), 'hex'),
			date_trunc('hour', at), at, at FROM generate_series(1, 9) n, LATERAL (SELECT $1::timestamptz - n * interval '90 days' AS at) a`,
	} {
		if _, err := b.pool.Exec(t.Context(), sql, b.now); err != nil {
			t.Fatal(err)
		}
	}
	media.NewUpkeep(b.config).Round(t.Context())
	b.wantFiles(1)
	b.do("GET", "/v1/vod/"+kept, nil).want(200)
	var views int
	if err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM media_views`).Scan(&views); err != nil || views != 4 {
		t.Errorf("%d views are left of 4 younger than 400 days, %v", views, err)
	}
}

func TestVideosAreListedByPageStatusAndStream(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *media.Config) { c.Plans = nil })
	var ids []string
	for range 3 {
		ids = append(ids, b.upload())
		b.now = b.now.Add(time.Second)
	}
	first := b.do("GET", "/v1/vod?limit=2", nil).want(200)
	if first.text("data.0.id") != ids[2] || first.get("pagination.has_more") != true {
		t.Errorf("%s", first.raw)
	}
	rest := b.do("GET", "/v1/vod?limit=2&cursor="+first.text("pagination.next_cursor"), nil).want(200)
	if rest.text("data.0.id") != ids[0] || rest.get("data.1") != nil || rest.get("pagination.has_more") != false {
		t.Errorf("%s", rest.raw)
	}
	for query, want := range map[string]float64{"status=ready": 3, "status=failed,processing": 0, "stream_id=strm_x": 0, "limit=1&offset=2": 3} {
		if n := b.do("GET", "/v1/vod?"+query, nil).want(200).get("pagination.total"); n != want {
			t.Errorf("%s: %v, want %v", query, n, want)
		}
	}
}

func TestAQuickTimeFileIsServedAsOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	raw := mp4test.Spec{Brand: "qt  ", Millis: 1000}.File()
	made := b.do("POST", "/v1/vod/upload", string(raw), "Content-Type", "video/quicktime").want(201)
	if made.text("title") != "Untitled" || made.text("format") != "mov" || made.get("resolution") != nil {
		t.Errorf("%s", made.raw)
	}
	got := b.fetch(made.text("playback_url") + "&download=1").want(200)
	if got.header.Get("Content-Type") != "video/quicktime" || got.header.Get("Content-Disposition") != `attachment; filename="`+made.text("id")+`.mov"` {
		t.Errorf("%v", got.header)
	}
	b.fetch(made.text("playback_url"), "If-None-Match", got.header.Get("ETag")).want(304)
	b.fetch(made.text("playback_url"), "Range", "bytes=999999-").want(416)
	several := b.fetch(made.text("playback_url"), "Range", "bytes=0-0"+strings.Repeat(",8-8,0-0", 1000)).want(200)
	if !bytes.Equal(several.raw, raw) {
		t.Errorf("%d bytes for several ranges", len(several.raw))
	}
}

// Two who share bytes and go at once leave none of them.
func TestClipsThatGoTogetherTakeTheirBytesAlong(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t))
	video := b.upload()
	paths := []string{"/v1/vod/" + video}
	for range 5 {
		paths = append(paths, "/v1/clips/"+b.do("POST", "/v1/clips", object{"vod_id": video, "duration": 1}).want(201).text("id"))
	}
	done := make(chan int)
	for _, path := range paths {
		go func() { done <- b.do("DELETE", path, nil).status }()
	}
	for range paths {
		if status := <-done; status != 204 {
			t.Errorf("status %d", status)
		}
	}
	b.wantFiles(0)
}

func TestAClipOfAVideoThatFailedIsRefused(t *testing.T) {
	t.Parallel()
	source, allow := origin(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) })
	b := setup(t, allow, withFFmpeg(t))
	id := b.do("POST", "/v1/vod", object{"source_url": source}).want(201).text("id")
	b.work(1)
	b.do("POST", "/v1/clips", object{"vod_id": id, "duration": 1}).wantError(409, "conflict")
	b.do("POST", "/v1/clips", object{"recording_id": "rec_x", "duration": 1}).wantError(400, "invalid_request", "recording_id")
}
