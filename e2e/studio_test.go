package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/e2e/harness"
)

// withEngine is the stack that tests of the media engine share. It may call
// receivers on this machine.
var withEngine struct {
	sync.Once
	s *stack
}

// studio returns that stack, started by the first test that asks.
func studio(t testing.TB) *stack {
	t.Helper()
	withEngine.Do(func() {
		dir := tempDir(t)
		env := settings(t, dir)
		env["SLUICE_MEDIA_ENGINE"] = need(t, "SLUICE_MEDIA_ENGINE")
		env["SLUICE_FFMPEG"], env["SLUICE_SPEECH"] = need(t, "SLUICE_FFMPEG"), need(t, "SLUICE_SPEECH")
		env["SLUICE_WEBHOOK_ALLOW_CIDRS"] = "127.0.0.1/32"
		for i, addr := range freeAddrs(t, 10) {
			env["SLUICE_"+[]string{"RTMP_ADDR", "SRT_ADDR", "WEBRTC_ADDR", "WEBRTC_MEDIA_ADDR", "HLS_LISTEN", "ENGINE_LISTEN", "ENGINE_API_LISTEN", "SIP_ADDR", "RTSP_LISTEN", "MOQ_ADDR"}[i]] = addr
		}
		withEngine.s = startIn(t, dir, env)
	})
	if withEngine.s == nil {
		t.Fatal("the stack with a media engine did not start")
	}
	return withEngine.s
}

// show is a stream with what publishers and viewers need of it.
type show struct {
	ID         string
	PlaybackID string `json:"playback_id"`
	Status     string
	Ingest     struct {
		Available    bool
		RTMP, WebRTC struct {
			URL string
			Key string `json:"stream_key"`
		}
	}
}

func (s *stack) createShow(t testing.TB, key string, fields map[string]any) show {
	t.Helper()
	fields["title"] = t.Name()
	r := call(t, http.MethodPost, s.url("/v1/streams"), key, fields)
	wantStatus(t, r, http.StatusCreated)
	return into[show](t, r)
}

// picture is what ffmpeg is to send: a test card with a tone.
var picture = []string{
	"-re", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=15", "-f", "lavfi", "-i", "sine=frequency=440",
	"-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p", "-g", "15", "-c:a", "aac", "-f", "flv",
}

// publisher is an ffmpeg that sends.
type publisher struct{ *harness.Process }

// publish starts ffmpeg with args and the RTMP address of a stream. It is stopped
// at the end of the test.
func publish(t testing.TB, to show, key string, args []string) *publisher {
	t.Helper()
	all := append([]string{"-nostdin", "-hide_banner", "-loglevel", "error"}, args...)
	p := running(t, exec.Command(need(t, "SLUICE_FFMPEG"), append(all, to.Ingest.RTMP.URL+"/"+key)...))
	t.Cleanup(p.Kill)
	return &publisher{p}
}

// left waits until the publisher has ended by itself.
func (p *publisher) left(t testing.TB) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Fatal("the publisher still sends")
	}
}

// notice is the body of a webhook.
type notice struct {
	Event       string         `json:"event"`
	StreamID    string         `json:"stream_id"`
	RecordingID string         `json:"recording_id"`
	Data        map[string]any `json:"data"`
}

// expect wants the next webhook of this stream to be of this event, rightly
// signed. Others of the account, whose streams other tests have on air, are let by.
func expect(t testing.TB, got chan hook, event, stream string) notice {
	t.Helper()
	for {
		h := receive(t, got)
		var n notice
		if err := json.Unmarshal(h.body, &n); err != nil {
			t.Fatal(err)
		}
		if n.StreamID != stream {
			continue
		}
		if n.Event != event {
			t.Fatalf("%s, want %s", h.body, event)
		}
		return n
	}
}

// The real input: a publisher sends by RTMP, viewers watch through Envoy with a
// signed token, a schedule ends it, and the account hears of it all, in order.
func TestABroadcast(t *testing.T) {
	t.Parallel()
	s := studio(t)
	key := s.dev["SLUICE_API_KEY"]
	url, got, _ := receiver(t)
	r := call(t, http.MethodPost, s.url("/v1/webhooks"), key, map[string]any{"url": url, "secret": webhookSecret, "ordered": true,
		"events": []string{"stream.started", "viewer.threshold_reached", "stream.ended", "recording.completed"}})
	wantStatus(t, r, http.StatusCreated)
	made := s.createShow(t, key, map[string]any{"recording": map[string]any{"enabled": true}, "playback_policy": "signed", "viewer_threshold": 1})
	if !made.Ingest.Available {
		t.Fatal("no ingest is available")
	}

	r = call(t, http.MethodPost, s.url("/v1/streams/"+made.ID+"/actions"), key, map[string]any{"action": "start"})
	wantStatus(t, r, http.StatusOK)
	if got := s.status(t, key, made); got != "starting" {
		t.Errorf("without a publisher it is %s", got)
	}

	p := publish(t, made, made.Ingest.RTMP.Key, picture)
	began := expect(t, got, "stream.started", made.ID)
	if began.Data["protocol"] != "rtmp" || began.Data["ingest_endpoint"] != made.Ingest.RTMP.URL {
		t.Errorf("%+v", began)
	}
	s.watch(t, key, made)
	expect(t, got, "viewer.threshold_reached", made.ID)

	plan := s.createSchedule(t, key, "stop "+made.ID, made.ID, "stop", soon())
	if e := s.awaitExecution(t, key, plan.ID); e.Status != "success" || e.Result.Action != "stopped" {
		t.Errorf("%+v", e)
	}
	p.left(t)
	ended := expect(t, got, "stream.ended", made.ID)
	done := expect(t, got, "recording.completed", made.ID)
	if ended.Data["peak_viewers"] != 1.0 || ended.Data["recording_id"] != done.RecordingID {
		t.Errorf("%+v, then %+v", ended, done)
	}
	s.wantRecording(t, done)
}

// watch plays a signed stream as a player does: the token, the playlists, and the
// first bytes of a picture.
func (s *stack) watch(t testing.TB, key string, made show) {
	t.Helper()
	base := s.url("/v1/playback/" + made.PlaybackID + "/")
	wantError(t, call(t, http.MethodGet, base+"index.m3u8", "", nil), 401, "invalid_token")
	r := call(t, http.MethodPost, s.url("/v1/streams/"+made.ID+"/tokens"), key, map[string]any{"viewer": "one"})
	wantStatus(t, r, http.StatusCreated)
	address := into[struct {
		HLS string `json:"hls_url"`
	}](t, r).HLS
	wantError(t, call(t, http.MethodGet, address+"x", "", nil), 401, "invalid_token")
	// The engine has a playlist when it has cut the first segment.
	for {
		var playlist response
		eventually(t, "the playlist "+address, func() error {
			if playlist = call(t, http.MethodGet, address, "", nil); playlist.StatusCode != http.StatusOK {
				return fmt.Errorf("%d %s", playlist.StatusCode, playlist.body)
			}
			return nil
		})
		wantHeaders(t, playlist)
		next := lastAddress(playlist.body)
		if !strings.Contains(next, "token=") {
			t.Fatalf("the playlist does not carry the token on:\n%s", playlist.body)
		}
		address = base + next
		if !strings.Contains(next, ".m3u8") {
			break
		}
	}
	manifest := call(t, http.MethodGet, base+"index.mpd?"+address[strings.Index(address, "token="):], "", nil)
	wantStatus(t, manifest, http.StatusOK)
	if !strings.Contains(manifest.body, "_video1_seg$Number$.mp4?token=") || manifest.Header.Get("Content-Type") != "application/dash+xml" {
		t.Errorf("%s\n%s", manifest.Header, manifest.body)
	}
	segment := call(t, http.MethodGet, address, "", nil)
	wantStatus(t, segment, http.StatusOK)
	if !strings.Contains(segment.body[:100], "moof") {
		t.Errorf("no fragment of a film: %q", segment.body[:100])
	}
}

// lastAddress is the last line of a playlist that is no tag.
func lastAddress(playlist string) (last string) {
	for lines := bufio.NewScanner(strings.NewReader(playlist)); lines.Scan(); {
		if line := lines.Text(); line != "" && line[0] != '#' {
			last = line
		}
	}
	return last
}

// wantRecording checks what recording.completed says against the file it names.
func (s *stack) wantRecording(t testing.TB, done notice) {
	t.Helper()
	if done.Data["format"] != "mp4" || done.Data["resolution"] != "320x180" || done.Data["duration"].(float64) < 1 {
		t.Errorf("%+v", done.Data)
	}
	address := done.Data["download_url"].(string)
	r := call(t, http.MethodGet, address, "", nil, "Range", "bytes=0-15")
	if r.StatusCode != http.StatusPartialContent || !strings.Contains(r.body, "ftyp") {
		t.Errorf("%d %q", r.StatusCode, r.body)
	}
	if want := fmt.Sprintf("bytes 0-15/%.0f", done.Data["file_size"]); r.Header.Get("Content-Range") != want {
		t.Errorf("%s, want %s", r.Header.Get("Content-Range"), want)
	}
	unsigned, _, _ := strings.Cut(address, "?")
	wantError(t, call(t, http.MethodGet, unsigned, "", nil), 401, "invalid_token")
}
