package media_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/legacy"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// provider answers as documented, with five videos on three pages: two good ones,
// one of another length, one that is gone, and one at a private address.
func provider(t *testing.T) (url string, config func(*media.Config)) {
	t.Helper()
	var base string
	var allow func(*media.Config)
	base, allow = origin(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/files/good") {
			http.ServeContent(w, r, "film.mp4", time.Time{}, bytes.NewReader(film))
			return
		}
		if r.URL.Path == "/files/gone" {
			http.NotFound(w, r)
			return
		}
		if r.Header.Get("Authorization") != "Bearer legacy-token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		video := func(id, file string, length float64) object {
			return object{"id": id, "title": "Video " + id, "duration": length, "size": len(film), "download_url": base + file}
		}
		pages := map[string]object{
			"":   {"videos": []object{video("1", "/files/good1", 60), video("2", "/files/good2", 60.4)}, "next_cursor": "p2"},
			"p2": {"videos": []object{video("3", "/files/good3", 99), video("4", "/files/gone", 60)}, "next_cursor": "p3"},
			"p3": {"videos": []object{{"id": "5", "title": "Video 5", "download_url": "http://10.0.0.1/film.mp4"}}},
		}
		switch r.URL.Path {
		case "/api/videos":
			_ = json.NewEncoder(w).Encode(pages[r.URL.Query().Get("cursor")])
		case "/api/webhooks":
			_ = json.NewEncoder(w).Encode(object{"webhooks": []object{{"url": "https://hooks.example/a", "events": []string{"video.ready", "ready", "odd.event"}}}})
		default:
			http.NotFound(w, r)
		}
	})
	return base + "/api", func(c *media.Config) {
		allow(c)
		c.Box, _ = secretbox.New(strings.Repeat("k", secretbox.MinKey))
		c.Plans = nil
		c.Subscribe = func(_ context.Context, _, url string, _ []string) (legacy.Subscription, error) {
			return legacy.Subscription{ID: "wh_" + url, Status: "disabled", Secret: "shown once"}, nil
		}
	}
}

const legacyPath = "/v1/migration/legacy"

func TestAnAccountMovesIn(t *testing.T) {
	t.Parallel()
	url, config := provider(t)
	b := setup(t, config)
	made := b.do("POST", legacyPath+"/connect", object{"base_url": url + "/", "api_token": "legacy-token"}).want(201)
	if made.text("base_url") != url || strings.Contains(string(made.raw), "legacy-token") {
		t.Errorf("%s", made.raw)
	}
	page := b.do("GET", legacyPath+"/videos", nil).want(200)
	if page.text("data.1.title") != "Video 2" || page.get("data.1.vod_id") != nil || page.text("pagination.next_cursor") != "p2" {
		t.Errorf("%s", page.raw)
	}
	if s := b.do("POST", legacyPath+"/import", object{"all": true}).want(202); s.text("status") != "importing" {
		t.Errorf("%s", s.raw)
	}
	b.do("POST", legacyPath+"/import", object{"all": true}).wantError(409, "conflict")
	b.work(5) // the import itself, and a fetch of each video that was taken over
	s := b.do("GET", legacyPath+"/status", nil).want(200)
	if s.text("status") != "completed" || s.get("progress.total") != 5.0 || s.get("progress.ready") != 3.0 || s.get("progress.failed") != 2.0 || s.get("progress.percentage") != 100.0 {
		t.Errorf("%s", s.raw)
	}
	c := b.do("GET", legacyPath+"/comparison", nil).want(200)
	if c.get("legacy.videos") != 5.0 || c.get("imported.videos") != 3.0 || c.get("complete") != false || c.text("missing.0") != "4" || c.text("missing.1") != "5" {
		t.Errorf("%s", c.raw)
	}
	v := b.do("POST", legacyPath+"/validate", nil).want(200)
	if v.get("valid") != false || v.get("checked") != 5.0 || !strings.Contains(v.text("problems.0.issue"), "lasts 60.000 s, not 99.000 s") ||
		!strings.Contains(v.text("problems.1.issue"), "404") || !strings.Contains(v.text("problems.2.issue"), "refused") {
		t.Errorf("%s", v.raw)
	}
	b.do("POST", legacyPath+"/webhooks/sync", nil).wantError(403, "AUTH_002", "scope")
	hooks := b.as(mayMigrate, "POST", legacyPath+"/webhooks/sync", nil).want(200)
	if hooks.text("data.0.events.0") != "vod.ready" || hooks.get("data.0.events.1") != nil || hooks.text("data.0.untranslated.0") != "odd.event" ||
		hooks.text("data.0.id") != "wh_https://hooks.example/a" || hooks.text("data.0.secret") != "shown once" || hooks.text("data.0.status") != "disabled" || hooks.get("data.0.created") != true {
		t.Errorf("%s", hooks.raw)
	}
	b.do("DELETE", legacyPath+"/cleanup", nil).want(204)
	b.do("GET", legacyPath+"/status", nil).wantError(409, "conflict")
	if n := b.do("GET", "/v1/vod?status=ready", nil).want(200).get("pagination.total"); n != 3.0 {
		t.Errorf("%v videos stay", n)
	}
}

func TestAnImportThatIsRepeatedTakesNothingTwice(t *testing.T) {
	t.Parallel()
	url, config := provider(t)
	b := setup(t, config)
	b.do("POST", legacyPath+"/connect", object{"base_url": url, "api_token": "legacy-token"}).want(201)
	b.do("POST", legacyPath+"/import", object{"video_ids": []string{"2"}}).want(202)
	b.work(2)
	if n := b.do("GET", "/v1/vod", nil).want(200).get("pagination.total"); n != 1.0 {
		t.Fatalf("%v videos", n)
	}
	b.do("POST", legacyPath+"/import", object{"video_ids": []string{"1", "2"}}).want(202)
	b.work(2)
	if n := b.do("GET", "/v1/vod", nil).want(200).get("pagination.total"); n != 2.0 {
		t.Errorf("%v videos", n)
	}
	page := b.do("GET", legacyPath+"/videos", nil).want(200)
	b.do("GET", "/v1/vod/"+page.text("data.0.vod_id"), nil).want(200)
}

// mayMigrate is a caller who may move all in, webhooks too.
var mayMigrate = identityheader.Caller{Account: "acct_1", Key: "key_1", Scopes: []string{"migration:*", "webhooks:write"}}

func TestConnectionsThatAreRefused(t *testing.T) {
	t.Parallel()
	url, config := provider(t)
	b := setup(t, config)
	connect := func(base, token string) answer {
		return b.do("POST", legacyPath+"/connect", object{"base_url": base, "api_token": token})
	}
	connect("ftp://x", "").wantError(400, "invalid_request", "base_url", "api_token")
	connect("http://10.0.0.1/api", "t").wantError(400, "invalid_request", "base_url")
	connect(url+"?x=1", "t").wantError(400, "invalid_request", "base_url")
	connect(url, "wrong").wantError(400, "invalid_request", "api_token")
	connect(strings.TrimSuffix(url, "/api"), "legacy-token").wantError(502, "bad_gateway")
	for _, r := range [][2]string{{"GET", "/videos"}, {"GET", "/status"}, {"POST", "/webhooks/sync"}, {"GET", "/comparison"}, {"POST", "/validate"}} {
		b.as(mayMigrate, r[0], legacyPath+r[1], nil).wantError(409, "conflict")
	}
	b.do("POST", legacyPath+"/import", object{}).wantError(400, "invalid_request", "video_ids")
	b.do("POST", legacyPath+"/import", object{"all": true, "video_ids": []string{""}}).wantError(400, "invalid_request", "video_ids", "video_ids")
	b.do("DELETE", legacyPath+"/cleanup", nil).want(204)
	plain := setup(t)
	plain.do("POST", legacyPath+"/connect", object{"base_url": url, "api_token": "t"}).wantError(501, "not_implemented")
}

func TestTheTokenOfAProviderIsNotStoredInTheClear(t *testing.T) {
	t.Parallel()
	url, config := provider(t)
	b := setup(t, config)
	b.do("POST", legacyPath+"/connect", object{"base_url": url, "api_token": "legacy-token"}).want(201)
	var stored []byte
	if err := b.pool.QueryRow(t.Context(), `SELECT token FROM media_migrations`).Scan(&stored); err != nil || bytes.Contains(stored, []byte("legacy")) {
		t.Errorf("%q, %v", stored, err)
	}
}

func TestAnImportTakesOverSoManyVideosAtMost(t *testing.T) {
	t.Parallel()
	url, config := provider(t)
	b := setup(t, config)
	b.do("POST", legacyPath+"/connect", object{"base_url": url, "api_token": "legacy-token"}).want(201)
	_, err := b.pool.Exec(t.Context(), `INSERT INTO media_migration_videos (owner, legacy_id, vod_id, duration_ms, file_size, error)
		SELECT 'acct_1', 'old ' || n, 'vod_' || n, 0, 0, '' FROM generate_series(1, 9999) n`)
	if err != nil {
		t.Fatal(err)
	}
	b.do("POST", legacyPath+"/import", object{"all": true}).want(202)
	b.work(2) // the import, and the fetch of the one video that has room
	s := b.do("GET", legacyPath+"/status", nil).want(200)
	if s.text("status") != "failed" || s.get("progress.total") != 10000.0 || !strings.Contains(s.text("error"), "10000 videos") {
		t.Errorf("%s", s.raw)
	}
}

// One whose provider hangs keeps nobody else from theirs.
func TestCallsOfAHangingProviderAreAShare(t *testing.T) {
	t.Parallel()
	arrived, let := make(chan struct{}), make(chan struct{})
	hanging, allow := origin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") != "1" { // the question of POST /connect
			arrived <- struct{}{}
			<-let
		}
		_, _ = w.Write([]byte(`{"videos":[]}`))
	})
	_, config := provider(t)
	b := setup(t, config, allow)
	for _, who := range []identityheader.Caller{{Account: "acct_1"}, otherAccount} {
		b.as(who, "POST", legacyPath+"/connect", object{"base_url": hanging, "api_token": "t"}).want(201)
	}
	const share = 4
	ended := make(chan int)
	ask := func(who identityheader.Caller) {
		go func() { ended <- b.as(who, "GET", legacyPath+"/comparison", nil).status }()
		<-arrived
	}
	for range share {
		ask(identityheader.Caller{Account: "acct_1"})
	}
	late := b.do("GET", legacyPath+"/videos", nil)
	late.wantError(429, "rate_limit_exceeded")
	if late.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	ask(otherAccount)
	close(let)
	for range share + 1 {
		if status := <-ended; status != 200 {
			t.Error(status)
		}
	}
}
