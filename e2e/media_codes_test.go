package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// post sends a body that is no JSON.
func post(t testing.TB, url, credential, kind string, body io.Reader) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	return send(t, client, req, credential)
}

// film is two seconds of a test card, 320 by 240 pixels.
func film(t testing.TB) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "film.mp4")
	out, err := exec.Command(need(t, "SLUICE_FFMPEG"), "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=10:duration=2",
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// whip is where a stream takes WebRTC publishers.
func (s *stack) whip(stream show) string {
	return s.url("/v1/ingest/ing" + strings.TrimPrefix(stream.ID, "strm") + "/whip")
}

// Each code of the table for streams, by a real request.
func TestStreamCodes(t *testing.T) {
	t.Parallel()
	s := studio(t)
	key := s.dev["SLUICE_API_KEY"]
	const offer = "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 34\r\na=rtpmap:34 H263/90000\r\n"
	rtmp, webrtc := s.createShow(t, key, map[string]any{}), s.createShow(t, key, map[string]any{"protocol": "webrtc"})
	if webrtc.Ingest.WebRTC.URL != s.whip(webrtc) {
		t.Errorf("publish at %s, want %s", webrtc.Ingest.WebRTC.URL, s.whip(webrtc))
	}
	wantError(t, post(t, s.whip(rtmp), rtmp.Ingest.WebRTC.Key, "application/sdp", strings.NewReader(offer)), 400, "STREAM_001")
	wantError(t, post(t, s.whip(webrtc), "sk_wrong", "application/sdp", strings.NewReader(offer)), 401, "STREAM_004")
	wantError(t, post(t, s.whip(webrtc), webrtc.Ingest.WebRTC.Key, "application/sdp", strings.NewReader(offer)), 400, "STREAM_005")
	fast := map[string]any{"title": "fast", "settings": map[string]any{"bitrate": "100000k"}}
	wantError(t, call(t, http.MethodPost, s.url("/v1/streams"), key, fast), 400, "STREAM_002")

	free := s.freeKey(t)
	var last response
	for range 2 {
		made := s.createShow(t, free, map[string]any{})
		last = call(t, http.MethodPost, s.url("/v1/streams/"+made.ID+"/actions"), free, map[string]any{"action": "start"})
	}
	wantError(t, last, 429, "STREAM_003")
}

// freeKey is a key of a new account on the free plan.
func (s *stack) freeKey(t testing.TB) string {
	t.Helper()
	status, out, errs := sluice(t, s.cli(), "account", "create", "--name", "small", "--plan", "free", "--output", "json")
	var account, key struct{ ID, Key string }
	if err := json.Unmarshal([]byte(out), &account); status != 0 || err != nil {
		t.Fatalf("%d %v %s", status, err, errs)
	}
	status, out, errs = sluice(t, s.cli(), "key", "create", "--account", account.ID, "--name", "small", "--scope", "streams:read", "--scope", "streams:write", "--output", "json")
	if err := json.Unmarshal([]byte(out), &key); status != 0 || err != nil {
		t.Fatalf("%d %v %s", status, err, errs)
	}
	s.known(t, key.Key)
	return key.Key
}

// Publishers whose key is wrong, or in use, are closed; whoever has the right key
// reads why among the account's events.
func TestStreamKeysThatDoNotPublish(t *testing.T) {
	t.Parallel()
	s := studio(t)
	key := s.dev["SLUICE_API_KEY"]
	made := s.createShow(t, key, map[string]any{})
	publish(t, made, made.PlaybackID+"?key=sk_wrong", picture).left(t)
	if got := s.status(t, key, made); got != "idle" {
		t.Errorf("with a wrong key it is %s", got)
	}
	publish(t, made, made.Ingest.RTMP.Key, picture)
	eventually(t, "the stream is live", func() error {
		if got := s.status(t, key, made); got != "live" {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	publish(t, made, made.Ingest.RTMP.Key, picture).left(t)
	s.wantTrouble(t, key, made, "STREAM_004")
}

// wantTrouble waits until the account's events name the code for a stream.
func (s *stack) wantTrouble(t testing.TB, key string, of show, code string) {
	t.Helper()
	type event struct {
		Type     string
		Code     string `json:"error_code"`
		StreamID string `json:"stream_id"`
	}
	eventually(t, "an event of "+code, func() error {
		r := call(t, http.MethodGet, s.url("/v1/events?type=error&limit=100"), key, nil)
		wantStatus(t, r, http.StatusOK)
		if !slices.Contains(into[struct{ Data []event }](t, r).Data, event{"stream.error", code, of.ID}) {
			return fmt.Errorf("none of %s in %s", of.ID, r.body)
		}
		return nil
	})
}

// Publishers who send what players do not understand, or more than was agreed, are
// closed.
func TestPublishersWhoBreakARule(t *testing.T) {
	t.Parallel()
	s := studio(t)
	key := s.dev["SLUICE_API_KEY"]
	sound := slices.Clone(picture)
	sound[slices.Index(sound, "aac")] = "libmp3lame"
	for code, c := range map[string]struct {
		fields map[string]any
		sent   []string
	}{
		"STREAM_005": {map[string]any{}, slices.Concat([]string{"-re"}, sound[1:len(sound)-2], []string{"-ar", "44100", "-f", "flv"})},
		"STREAM_002": {map[string]any{"settings": map[string]any{"bitrate": "100k"}}, picture},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			made := s.createShow(t, key, c.fields)
			publish(t, made, made.Ingest.RTMP.Key, c.sent).left(t)
			s.wantTrouble(t, key, made, code)
		})
	}
}

func (s *stack) status(t testing.TB, key string, of show) string {
	t.Helper()
	r := call(t, http.MethodGet, s.url("/v1/streams/"+of.ID), key, nil)
	wantStatus(t, r, http.StatusOK)
	return into[show](t, r).Status
}

// Each code of the table for conversions, by a real request; and what they refuse
// to others they do for a film.
func TestConversionsAndTheirCodes(t *testing.T) {
	t.Parallel()
	s := studio(t)
	key, source := s.dev["SLUICE_API_KEY"], film(t)
	send := func(base, path string, body []byte) response {
		t.Helper()
		return post(t, base+path, key, "application/octet-stream", bytes.NewReader(body))
	}
	gateway := s.dev["SLUICE_GATEWAY_URL"]
	for _, base := range []string{gateway, s.dev["SLUICE_RUNTIME_URL"]} {
		r := send(base, "/v1/transcode?profile=240p", source)
		wantStatus(t, r, http.StatusOK)
		if r.Header.Get("Content-Type") != "video/mp4" || !strings.Contains(r.body[:12], "ftyp") {
			t.Errorf("%s: %s %q", base, r.Header.Get("Content-Type"), r.body[:12])
		}
	}
	wantError(t, send(gateway, "/v1/transcode", source), 400, "TRANSCODE_002")
	wantError(t, send(gateway, "/v1/transcode?profile=1080p", source), 400, "TRANSCODE_003")
	wantError(t, send(gateway, "/v1/mux", []byte("hello")), 400, "STORAGE_002")
	wantError(t, send(gateway, "/v1/voice", []byte{0}), 400, "invalid_request")

	made := s.createShow(t, key, map[string]any{})
	track := map[string]any{"language": "en", "content": "WEBVTT\n\n" + strings.Repeat("NOTE x\n\n", 1<<17+1)}
	wantError(t, call(t, http.MethodPost, s.url("/v1/streams/"+made.ID+"/captions"), key, track), 413, "STORAGE_001")
	s.wantFullRoom(t, key)
}

// wantFullRoom has more callers than find place send without an end, and wants the
// next one to be turned away.
func (s *stack) wantFullRoom(t testing.TB, key string) {
	t.Helper()
	for range 12 { // four to spare: the last request may come before some of them, and take a place
		body, end := io.Pipe()
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			req, err := http.NewRequest(http.MethodPost, s.url("/v1/mux"), body)
			if err == nil {
				req.Header.Set("Authorization", "Bearer "+key)
				req.Header.Set("Content-Type", "application/octet-stream")
				if res, err := client.Do(req); err == nil {
					res.Body.Close()
				}
			}
		}()
		t.Cleanup(func() { end.Close(); <-gone })
		if _, err := end.Write(make([]byte, 1<<16)); err != nil { // more than is held back on the way
			t.Fatal(err)
		}
	}
	var r response
	eventually(t, "the room is full", func() error {
		if r = post(t, s.url("/v1/mux"), key, "application/octet-stream", strings.NewReader("hello")); r.StatusCode != http.StatusServiceUnavailable {
			return fmt.Errorf("%d %s", r.StatusCode, r.body)
		}
		return nil
	})
	wantError(t, r, 503, "TRANSCODE_001")
	if r.Header.Get("Retry-After") != "30" {
		t.Errorf("Retry-After is %q", r.Header.Get("Retry-After"))
	}
}

// The tour that `sluice demo` takes, on a stack that may call this machine.
func TestTheDemo(t *testing.T) {
	t.Parallel()
	s := studio(t)
	status, out, errs := sluice(t, s.env, "demo", "--seconds", "2")
	if status != 0 {
		t.Fatalf("status %d\n%s\n%s", status, out, errs)
	}
	at := 0
	for _, want := range []string{"stream.started", "viewer.threshold_reached", "stream.ended", "recording.completed", "each signature right"} {
		i := strings.Index(out[at:], want)
		if i < 0 {
			t.Fatalf("%q does not come next in\n%s", want, out)
		}
		at += i
	}
	var player string
	for word := range strings.FieldsSeq(out) {
		if strings.Contains(word, "/player?") {
			player = word
		}
	}
	r := call(t, http.MethodGet, player, "", nil)
	wantStatus(t, r, http.StatusOK)
	if !strings.Contains(r.body, "Sluice demo") || strings.Contains(r.body, "://") {
		t.Errorf("%s", r.body)
	}
}

// The film of `sluice demo --all`: each step shows what it promises, on real engines.
func TestTheDemoMakesAFilm(t *testing.T) {
	t.Parallel()
	s := studio(t)
	status, out, errs := sluice(t, s.env, "demo", "--all")
	if status != 0 {
		t.Fatalf("status %d\n%s\n%s", status, out, errs)
	}
	t.Log(out)
	for i, want := range []string{"Engines     all are there, voice by ", "Voice       ", "Publish     strm_", "HLS         ", "DASH        ", "WebRTC      50 packets of video/H264 and audio/opus", "Subtitles   ", "Recording   rec_", "Captions    ", "Clip        clip_", "Edit        vod_"} {
		if !strings.Contains(out, fmt.Sprintf("%2d. %s", i+1, want)) {
			t.Errorf("no step %d, %s, in\n%s", i+1, want, out)
		}
	}
	if !strings.Contains(strings.ToLower(out), "invited to watch") {
		t.Errorf("the captions are not those of what was said:\n%s", out)
	}
}
