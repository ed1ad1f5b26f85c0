package media_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media"
)

// hlsEngine is a media engine that has every stream on air. It refuses whatever
// carries a viewer's token.
func hlsEngine(t *testing.T) func(*media.Config) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch file := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; {
		case r.URL.Query().Has("token"):
			w.WriteHeader(400)
		case file == "whip" && r.Header.Get("Authorization") == "":
			w.WriteHeader(401)
		case (file == "whep" || file == "whip") && r.Method == http.MethodPost:
			offer, _ := io.ReadAll(r.Body)
			if string(offer) != "offer" {
				w.WriteHeader(400)
				return
			}
			w.Header().Set("Content-Type", "application/sdp")
			w.Header().Set("Location", r.URL.Path+"/5e55-1")
			w.WriteHeader(201)
			_, _ = w.Write([]byte("answer"))
		case file == "5e55-1" && r.Method == http.MethodPatch:
			w.WriteHeader(204)
		case file == "5e55-1" && r.Method == http.MethodDelete:
		case file == "index.m3u8":
			w.Header().Set("Content-Type", "application/vnd.apple.mpegurl")
			_, _ = w.Write([]byte("#EXTM3U\nseg1.mp4?x=" + r.URL.Query().Get("_HLS_msn") + "\n"))
		case file == "seg1.mp4":
			w.Header().Set("Content-Type", "video/mp4")
			_, _ = w.Write([]byte("pictures"))
		case file == "broken.mp4":
			w.WriteHeader(500)
		default:
			w.WriteHeader(404)
		}
	}))
	t.Cleanup(s.Close)
	return func(c *media.Config) { c.EngineHLS, c.EngineWebRTC = s.URL+"/live", s.URL+"/live" }
}

func TestTheEmbedCodeIsSafeToPaste(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.stream(`"><script>alert(1)</script>`)
	e := b.do("GET", "/v1/streams/"+id+"/embed?width=800&autoplay=true", nil).want(200)
	if html := e.text("html"); strings.Contains(html, "<script") || !strings.Contains(html, `width="800" height="360"`) || !strings.Contains(html, "/player?autoplay=true") {
		t.Error(html)
	}
	player := b.fetch(e.text("url")).want(200)
	page, policy := string(player.raw), player.header.Get("Content-Security-Policy")
	if strings.Count(page, "<script") != 1 || strings.Contains(page, "alert(1)</script>") || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("%s\n%s", policy, page)
	}
	if strings.Contains(page, "http:") || strings.Contains(page, "https:") {
		t.Error("the player asks others")
	}
	b.do("GET", "/v1/streams/"+id+"/embed?width=1&height=x&muted=maybe", nil).wantError(400, "invalid_request", "width", "height", "muted")
}

func TestASignedStreamOpensForItsTokenOnly(t *testing.T) {
	t.Parallel()
	b := setup(t, hlsEngine(t))
	made := b.do("POST", "/v1/streams", object{"title": "Members", "playback_policy": "signed"}).want(201)
	id, hls := made.text("id"), made.text("playback.hls_url")
	token := b.do("POST", "/v1/streams/"+id+"/tokens", object{"expires_in": 60, "viewer": "ann"}).want(201)
	if token.text("expires_at") != "2026-03-01T12:01:00Z" || token.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s", token.raw)
	}
	playlist := b.fetch(token.text("hls_url") + "&_HLS_msn=7").want(200)
	if got := string(playlist.raw); got != "#EXTM3U\nseg1.mp4?token="+url.QueryEscape(token.text("token"))+"&x=\n" { // what makes the engine wait stays here
		t.Error(got)
	}
	base := strings.TrimSuffix(hls, "index.m3u8")
	if got := b.fetch(base + "seg1.mp4?token=" + token.text("token")).want(200); string(got.raw) != "pictures" {
		t.Errorf("%s", got.raw)
	}
	b.fetch(token.text("embed_url")).want(200)
	b.fetch(hls).wantError(401, "invalid_token")
	other := b.do("POST", "/v1/streams/"+b.stream("Other")+"/tokens", nil).want(201).text("token")
	b.fetch(hls+"?token="+other).wantError(401, "invalid_token")
	b.now = b.now.Add(time.Minute)
	b.fetch(token.text("hls_url")).wantError(401, "AUTH_001")
	b.do("POST", "/v1/streams/"+id+"/tokens", object{"expires_in": 5, "viewer": "\x00"}).wantError(400, "invalid_request", "expires_in", "viewer")
}

func TestWhatTheEngineSaysReachesTheViewer(t *testing.T) {
	t.Parallel()
	b := setup(t, hlsEngine(t))
	made := b.do("POST", "/v1/streams", object{"title": "Open"}).want(201)
	base := strings.TrimSuffix(made.text("playback.hls_url"), "index.m3u8")
	b.fetch(base + "index.m3u8").want(200)
	b.fetch(base+"missing.m3u8").wantError(404, "not_found")
	b.fetch(base+"broken.mp4").wantError(502, "bad_gateway")
	b.fetch(base+"secret.txt").wantError(404, "not_found")
	b.fetch(base+"..%2f..%2fconfig.m3u8").wantError(404, "not_found")
	b.fetch("/v1/playback/play_x/index.m3u8").wantError(404, "not_found")
	b.act(made.text("id"), "start").want(200)
	b.act(made.text("id"), "pause").want(200)
	b.fetch(base+"index.m3u8").wantError(404, "not_found")
}

func TestWithoutAnEngineNothingIsPlayed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.do("POST", "/v1/streams", object{"title": "Open"}).want(201)
	if made.get("ingest.available") != false {
		t.Errorf("%s", made.raw)
	}
	b.fetch(made.text("playback.hls_url")).wantError(501, "not_implemented")
}

func TestViewersAreCountedAndTheirThresholdTold(t *testing.T) {
	t.Parallel()
	b := newStudio(t, hlsEngine(t))
	made := b.do("POST", "/v1/streams", object{"title": "Show", "viewer_threshold": 2}).want(201)
	id, hls := made.text("id"), made.text("playback.hls_url")
	b.act(id, "start").want(200)
	watch := func(viewer string) {
		b.fetch(hls, "User-Agent", viewer).want(200)
		b.step()
	}
	watch("ann")
	b.now = b.now.Add(20 * time.Second)
	watch("ann")
	watch("bob")
	watch("cid")
	stats := b.do("GET", "/v1/analytics/views?interval=hour&stream_id="+id, nil).want(200)
	if stats.get("current_viewers") != 3.0 || stats.get("totals.views") != 3.0 || stats.get("totals.watch_seconds") != 20.0 {
		t.Errorf("%s", stats.raw)
	}
	b.now = b.now.Add(time.Hour)
	watch("ann")
	b.act(id, "stop").want(200)
	stats = b.do("GET", "/v1/analytics/views?interval=hour&stream_id="+id, nil).want(200)
	if stats.get("totals.views") != 4.0 || stats.get("totals.unique_viewers") != 3.0 || stats.get("totals.watch_seconds") != 20.0 ||
		stats.get("current_viewers") != 1.0 || stats.text("data.1.start") != "2026-03-01T13:00:00Z" {
		t.Errorf("%s", stats.raw)
	}
	if b.eventTypes() != "stream.started viewer.threshold_reached stream.ended" {
		t.Fatal(b.eventTypes())
	}
	told, ended := b.events()[1], b.events()[2]
	if told.Data["threshold"] != 2.0 || told.Data["current_viewers"] != 2.0 || ended.Data["total_viewers"] != 3.0 || ended.Data["peak_viewers"] != 3.0 {
		t.Errorf("%+v\n%+v", told, ended)
	}
}

func TestAnalyticsShowTheOwnersOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.upload()
	b.fetch(b.do("GET", "/v1/vod/"+id, nil).want(200).text("playback_url")).want(200)
	if v := b.do("GET", "/v1/analytics/views?asset_id="+id, nil).want(200); v.get("totals.views") != 1.0 || v.text("data.0.start") != "2026-03-01T00:00:00Z" {
		t.Errorf("%s", v.raw)
	}
	s := b.do("GET", "/v1/analytics/storage", nil).want(200)
	if s.get("used_bytes") != float64(len(film)) || s.get("limit_bytes") != 10000.0 || s.get("data.0.kind") != "vod" || s.get("data.0.bytes") != float64(len(film)) {
		t.Errorf("%s", s.raw)
	}
	if v := b.as(otherAccount, "GET", "/v1/analytics/views?asset_id="+id, nil).want(200); v.get("totals.views") != 0.0 || v.get("current_viewers") != 0.0 {
		t.Errorf("%s", v.raw)
	}
	if s := b.as(otherAccount, "GET", "/v1/analytics/storage", nil).want(200); s.get("used_bytes") != 0.0 {
		t.Errorf("%s", s.raw)
	}
	b.do("GET", "/v1/analytics/views?from=soon&interval=week&stream_id=%00", nil).wantError(400, "invalid_request", "from", "interval", "stream_id")
	b.do("GET", "/v1/analytics/views?from=2025-01-01&to=2026-02-01", nil).wantError(400, "invalid_request", "from")
}

func TestAViewerComesByWebRTC(t *testing.T) {
	t.Parallel()
	b := setup(t, hlsEngine(t))
	made := b.do("POST", "/v1/streams", object{"title": "Members", "playback_policy": "signed"}).want(201)
	token := b.do("POST", "/v1/streams/"+made.text("id")+"/tokens", nil).want(201).text("token")
	_, path, _ := strings.Cut(made.text("playback.webrtc_url"), "/v1/")
	path = "/v1/" + path
	post := func(query, offer string) answer {
		return b.do("POST", path+query, offer, "Content-Type", "application/sdp", identityheader.Header, "none")
	}
	post("", "offer").wantError(401, "invalid_token")
	post("?token="+token, "nonsense").wantError(400, "invalid_request")
	answer := post("?token="+token, "offer").want(201)
	_, session, _ := strings.Cut(answer.header.Get("Location"), "/v1/")
	if string(answer.raw) != "answer" || !strings.HasSuffix(session, "/whep/5e55-1?token="+token) {
		t.Errorf("%s, at %s", answer.raw, session)
	}
	b.do("PATCH", "/v1/"+session, "candidate", identityheader.Header, "none").want(204)
	b.do("DELETE", "/v1/"+session, nil, identityheader.Header, "none").want(200)
	b.do("DELETE", path+"/other?token="+token, nil).wantError(404, "not_found")
	b.do("DELETE", path+"/..%2f..?token="+token, nil).wantError(404, "not_found")
	if v := b.do("GET", "/v1/analytics/views?stream_id="+made.text("id"), nil).want(200); v.get("totals.views") != 1.0 {
		t.Errorf("%s", v.raw)
	}
	none := setup(t)
	open := none.do("POST", "/v1/streams", object{"title": "Open"}).want(201)
	none.do("POST", "/v1/playback/"+open.text("playback_id")+"/whep", "offer").wantError(501, "not_implemented")
}
