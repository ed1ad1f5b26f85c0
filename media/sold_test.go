package media_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/platform/http/identity"
)

// An agent that paid once comes back without a credential to see its clip.
func TestPayingAgentReadsItsClip(t *testing.T) {
	t.Parallel()
	source, allow := origin(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "film.mp4", time.Time{}, bytes.NewReader(ffmpegtest.Film(t, "mp4")))
	})
	b := setup(t, allow, withFFmpeg(t))
	agent := identity.Caller{Key: "pay_0x00000000000000000000000000000000000000aa", Scopes: []string{"clips:write"}}
	order := object{"source_url": source, "start": 1, "duration": 1}
	clip := b.as(agent, "POST", "/v1/clips", order).want(201)
	link := clip.text("status_url")
	_, token, found := strings.Cut(link, "/v1/playback/clips/"+clip.text("id")+"?token=")
	if !found {
		t.Fatalf("status_url %q", link)
	}
	at := func(id, token string) answer {
		return b.fetch("/v1/playback/clips/" + id + "?token=" + token)
	}
	first := at(clip.text("id"), token).want(200)
	if first.text("status") != "processing" || first.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %v", first.raw, first.header)
	}
	b.work(2)
	ready := at(clip.text("id"), token).want(200)
	if ready.text("status") != "ready" {
		t.Fatalf("%s", ready.raw)
	}
	b.fetch(ready.text("playback_url")).want(200)

	// The token opens one clip's state, and no bytes.
	other := b.as(agent, "POST", "/v1/clips", order).want(201).text("id")
	at(other, token).wantError(401, "invalid_token")
	at(clip.text("id"), token+"x").wantError(401, "invalid_token")
	b.fetch("/v1/playback/files/"+clip.text("id")+"?token="+token).wantError(401, "invalid_token")
	// A later address ends when the first one does.
	b.now = b.now.Add(24 * time.Hour)
	_, later, _ := strings.Cut(ready.text("status_url"), "?token=")
	for _, each := range []string{token, later} {
		at(clip.text("id"), each).wantError(401, "AUTH_001")
	}
}

// Callers with an account read clips with their credential.
func TestAccountsGetNoStatusAddress(t *testing.T) {
	t.Parallel()
	b := setup(t, withFFmpeg(t))
	clip := b.do("POST", "/v1/clips", object{"vod_id": b.upload(), "duration": 1}).want(201)
	if strings.Contains(string(clip.raw), "status_url") {
		t.Errorf("%s", clip.raw)
	}
}
