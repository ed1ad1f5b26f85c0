package demo

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/platform/process/child/childtest"
)

// platform is a gateway that does what the tour asks, in memory.
type platform struct {
	mu       sync.Mutex
	hook     string // where webhooks go; empty: none are
	secret   string
	refuses  bool // private addresses
	noEngine bool
	deleted  bool   // the subscription
	kill     func() // ends the publisher
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	switch r.Method + " " + r.URL.Path {
	case "POST /v1/webhooks":
		if p.refuses {
			w.WriteHeader(400)
			fmt.Fprint(w, `{"error":{"code":"invalid_request","message":"no"}}`)
			return
		}
		p.hook, p.secret = body["url"].(string), body["secret"].(string)
		fmt.Fprint(w, `{"id":"wh_1"}`)
	case "DELETE /v1/webhooks/wh_1":
		p.deleted = true
		w.WriteHeader(204)
	case "POST /v1/streams":
		fmt.Fprintf(w, `{"id":"strm_1","ingest":{"available":%v,"rtmp":{"url":"rtmp://x/live","stream_key":"k"}}}`, !p.noEngine)
	case "POST /v1/streams/strm_1/tokens":
		fmt.Fprintf(w, `{"hls_url":"http://%s/index.m3u8","embed_url":"http://%s/player?token=t"}`, r.Host, r.Host)
	case "GET /index.m3u8":
		fmt.Fprint(w, "#EXTM3U\n")
	case "POST /v1/events/schedules":
		p.kill()
		go func() { _ = p.deliver(p.secret, "stream.ended"); _ = p.deliver(p.secret, "recording.completed") }()
	case "GET /v1/recordings":
		fmt.Fprint(w, `{"data":[{"status":"ready","playback_url":"http://files/rec_1"}]}`)
	default:
		w.WriteHeader(404)
	}
}

// deliver sends a webhook signed with secret and returns its status.
func (p *platform) deliver(secret, event string) int {
	body := `{"id":"evt_` + event + `","event":"` + event + `","stream_id":"strm_1","data":{"duration":3}}`
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	req, err := http.NewRequest(http.MethodPost, p.hook, strings.NewReader(body))
	if err != nil || p.hook == "" {
		return 0
	}
	req.Header.Set("X-Service-Signature", hex.EncodeToString(mac.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

// take runs the tour against p with a publisher that sends until it is closed.
func (p *platform) take(t *testing.T) (string, error) {
	t.Helper()
	dir := t.TempDir()
	script, pipe := filepath.Join(dir, "ffmpeg"), filepath.Join(dir, "pipe")
	childtest.Program(t, script, "#!/bin/sh\nmkfifo "+pipe+" 2>/dev/null\nread x < "+pipe+"\n")
	p.kill = func() { go func() { _ = os.WriteFile(pipe, []byte("go\n"), 0o600) }() }
	gateway := httptest.NewServer(p)
	t.Cleanup(gateway.Close)
	var out strings.Builder
	err := Run(context.Background(), Config{Gateway: gateway.URL, Key: "key", FFmpeg: script, On: time.Millisecond, Out: &out})
	return out.String(), err
}

func TestTheTourShowsWhatItPromises(t *testing.T) {
	t.Parallel()
	p := &platform{}
	out, err := p.take(t)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"subscription wh_1", "strm_1", "player?token=t", "stream.ended", "recording.completed", "signature right  duration=3", "http://files/rec_1", "each signature right"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if !p.deleted {
		t.Error("the subscription is left behind")
	}
}

func TestAStackThatDoesNotCallThisMachineIsToured(t *testing.T) {
	t.Parallel()
	out, err := (&platform{refuses: true}).take(t)
	if err != nil || !strings.Contains(out, "SLUICE_WEBHOOK_ALLOW_CIDRS=127.0.0.1/32") || !strings.Contains(out, "http://files/rec_1") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	if out, err := (&platform{noEngine: true}).take(t); err == nil || !strings.Contains(err.Error(), "make tools") {
		t.Errorf("%v\n%s", err, out)
	}
	err := Run(context.Background(), Config{Gateway: "http://127.0.0.1:1", Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "is the stack up?") {
		t.Error(err)
	}
}

func TestAWrongSignatureIsRefused(t *testing.T) {
	t.Parallel()
	r := &receiver{secret: "right", ended: make(chan struct{}), seen: map[string]bool{}, say: func(string, ...any) {}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	p := &platform{hook: server.URL}
	if got := p.deliver("wrong", "stream.started"); got != http.StatusUnauthorized || r.wrong != 1 {
		t.Errorf("%d, %d", got, r.wrong)
	}
	r.follow("strm_1")
	for range 2 {
		if got := p.deliver("right", "stream.started"); got != http.StatusNoContent {
			t.Errorf("%d", got)
		}
	}
	r.follow("strm_2")
	if got := p.deliver("right", "stream.ended"); got != http.StatusNoContent || len(r.seen) != 1 {
		t.Errorf("%d, %d seen of one that came twice and one of another stream", got, len(r.seen))
	}
}
