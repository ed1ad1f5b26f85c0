//go:build docker

package docker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/e2e/harness"
)

// long are the services that run until they are stopped.
var long = []string{"controlplane-1", "controlplane-2", "worker-1", "worker-2", "runtime", "media", "engine", "edge-1", "edge-2", "edge-3", "postgres"}

// One platform serves all parts, which follow one another: each breaks something
// and mends it.
func TestPlatformInContainers(t *testing.T) {
	p := start(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, platform)
	}{
		{"every container is hardened and healthy", hardened},
		{"policy holds behind one address", policy},
		{"a chat is streamed", chat},
		{"what is spoken is understood", programs},
		{"what is published is watched", live},
		{"edges are killed under load", edgesDie},
		{"a control plane is killed", controlPlaneDies},
		{"a worker is killed", workerDies},
		{"the database is killed", databaseDies},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, p) })
	}
}

func hardened(t *testing.T, _ platform) {
	for _, service := range append(long, "balancer") {
		var c []struct {
			Config     struct{ User string }
			HostConfig struct {
				ReadonlyRootfs bool
				SecurityOpt    []string
				Privileged     bool
			}
		}
		if err := json.Unmarshal([]byte(docker(t, "inspect", container(t, service))), &c); err != nil {
			t.Fatal(err)
		}
		if user := c[0].Config.User; user == "" || strings.HasPrefix(user, "0") || !c[0].HostConfig.ReadonlyRootfs || c[0].HostConfig.Privileged || len(c[0].HostConfig.SecurityOpt) == 0 {
			t.Errorf("%s: %+v", service, c[0])
		}
	}
	for _, service := range long {
		healthy(t, service)
	}
}

// healthy waits until the container says that it is.
func healthy(t *testing.T, service string) {
	t.Helper()
	eventually(t, service+" is healthy", func() error {
		if state := docker(t, "inspect", "--format", "{{.State.Health.Status}}", container(t, service)); state != "healthy" {
			return errors.New(state)
		}
		return nil
	})
}

func policy(t *testing.T, p platform) {
	var made struct{ ID, Key string }
	p.make(t, "/v1/auth/keys", p.dev["SLUICE_SESSION_TOKEN"], "policy", map[string]any{"name": "policy", "scopes": []string{"streams:read"}}, &made)
	for range 6 { // whichever edge answers
		eventually(t, "a new key works", func() error { return p.gives(http.MethodGet, "/v1/streams", made.Key, 200) })
	}
	for _, c := range []struct {
		method, path, key string
		status            int
	}{
		{"GET", "/v1/streams", "", 401}, {"POST", "/v1/streams", made.Key, 403}, {"GET", "/v1/nowhere", made.Key, 403}, {"GET", "/v1/health", "", 200},
	} {
		for range 3 {
			if err := p.gives(c.method, c.path, c.key, c.status); err != nil {
				t.Errorf("want %d: %v", c.status, err)
			}
		}
	}
	if err := p.gives(http.MethodDelete, "/v1/auth/keys/"+made.ID, p.dev["SLUICE_SESSION_TOKEN"], 204); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		eventually(t, "a revoked key ends", func() error { return p.gives(http.MethodGet, "/v1/streams", made.Key, 401) })
	}
}

func chat(t *testing.T, p platform) {
	a, err := ask(http.MethodPost, p.runtime+"/v1/chat/completions", p.dev["SLUICE_API_KEY"],
		map[string]any{"model": "echo-1", "messages": []any{map[string]string{"role": "user", "content": "hello containers"}}})
	if err != nil || a.StatusCode != 200 || !strings.Contains(string(a.Text), "containers") || !strings.HasSuffix(strings.TrimSpace(string(a.Text)), "data: [DONE]") {
		t.Errorf("%v: %+v %s", err, a.Response, a.Text)
	}
}

// programs has the image of the media product speak, and understand what it has said.
func programs(t *testing.T, p platform) {
	const text = "The stream starts in the evening."
	key := p.dev["SLUICE_API_KEY"]
	slow := &http.Client{Timeout: 2 * time.Minute}
	sound, err := harness.Ask(t.Context(), slow, http.MethodPost, p.gateway+"/v1/voice", key, map[string]string{"text": text})
	if err != nil || sound.StatusCode != 200 || !strings.HasPrefix(string(sound.Text), "RIFF") {
		t.Fatalf("%v: %+v %.200s", err, sound.Response, sound.Text)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.gateway+"/v1/transcribe?format=text", bytes.NewReader(sound.Text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "audio/wav")
	res, err := slow.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if heard, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 || strings.TrimSpace(string(heard)) != text {
		t.Errorf("%d %q, %v", res.StatusCode, heard, err)
	}
	registry, err := ask(http.MethodGet, p.gateway+"/.well-known/platform-products.json", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Products []struct{ Name, State string }
	}
	if err := registry.Into(&list); err != nil {
		t.Fatal(err)
	}
	available := map[string]bool{}
	for _, one := range list.Products {
		available[one.Name] = one.State == "available"
	}
	for _, name := range []string{"voice", "transcribe", "captions", "vision", "transcode", "editor", "rtmp", "srt", "webrtc", "hls", "dash", "moq"} {
		if !available[name] {
			t.Errorf("%s is not available", name)
		}
	}
}

// live publishes from outside, at the port that the stream names, and reads what comes out of
// the gateway. The engine dies and comes back, and its volume has what was recorded.
func live(t *testing.T, p platform) {
	ffmpeg := os.Getenv("SLUICE_FFMPEG")
	if ffmpeg == "" {
		t.Fatal("SLUICE_FFMPEG is not set: run `make e2e-docker`")
	}
	var made struct {
		ID         string
		PlaybackID string `json:"playback_id"`
		Ingest     struct {
			Available bool
			RTMP      struct {
				URL string
				Key string `json:"stream_key"`
			}
		}
	}
	key := p.dev["SLUICE_API_KEY"]
	p.make(t, "/v1/streams", key, "live", map[string]any{"title": "live", "protocol": "rtmp", "recording": map[string]any{"enabled": true}}, &made)
	if !made.Ingest.Available || made.Ingest.RTMP.URL != "rtmp://"+p.ingest+":1935/live" {
		t.Fatalf("%+v", made.Ingest)
	}
	var said bytes.Buffer
	publish := exec.CommandContext(t.Context(), ffmpeg, "-hide_banner", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=10", "-c:v", "libx264", "-preset", "ultrafast",
		"-tune", "zerolatency", "-g", "10", "-pix_fmt", "yuv420p", "-f", "flv", made.Ingest.RTMP.URL+"/"+made.Ingest.RTMP.Key)
	publish.Stderr = &said
	if err := publish.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = publish.Wait() }() // it ends with the engine
	address := regexp.MustCompile(`(?m)^[^#\s].*$`)
	part := "/v1/playback/" + made.PlaybackID + "/index.m3u8"
	for _, what := range []string{"the playlist", "the playlist of a track", "a segment"} {
		var text string
		eventually(t, what, func() error {
			a, err := ask(http.MethodGet, p.gateway+part, "", nil)
			if err == nil && (a.StatusCode != 200 || len(a.Text) == 0) {
				err = fmt.Errorf("%d %s: %s", a.StatusCode, a.Text, &said)
			}
			text = string(a.Text)
			if err == nil && what != "a segment" && address.FindString(text) == "" {
				err = errors.New(text)
			}
			return err
		})
		if lines := address.FindAllString(text, -1); len(lines) > 0 {
			part = "/v1/playback/" + made.PlaybackID + "/" + lines[len(lines)-1]
		}
	}
	kill(t, "engine", func() { _ = publish.Process.Kill() })
	eventually(t, "the recording is stored", func() error {
		a, err := ask(http.MethodGet, p.gateway+"/v1/recordings?stream_id="+made.ID, key, nil)
		if err == nil && !strings.Contains(string(a.Text), `"status":"ready"`) {
			err = errors.New(string(a.Text))
		}
		return err
	})
}

// kill ends a container as a crash does, lets f see to it, and starts it again.
func kill(t *testing.T, service string, f func()) {
	t.Helper()
	id := container(t, service)
	docker(t, "kill", id)
	f()
	docker(t, "start", id)
	healthy(t, service)
}

// Requests go on while one edge after the other dies: a client that tries again
// once is served.
func edgesDie(t *testing.T, p platform) {
	stop := make(chan struct{})
	var group sync.WaitGroup
	var mu sync.Mutex
	served, failures := 0, []string{}
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := p.gives(http.MethodGet, "/v1/streams", p.dev["SLUICE_API_KEY"], 200)
				for tries := 0; err != nil && tries < 3; tries++ {
					err = p.gives(http.MethodGet, "/v1/streams", p.dev["SLUICE_API_KEY"], 200)
				}
				mu.Lock()
				if served++; err != nil {
					failures = append(failures, err.Error())
				}
				mu.Unlock()
			}
		})
	}
	for _, edge := range []string{"edge-1", "edge-2", "edge-3"} {
		kill(t, edge, func() {
			mu.Lock()
			at := served
			mu.Unlock()
			eventually(t, "the other edges serve", func() error {
				mu.Lock()
				defer mu.Unlock()
				if served < at+20 {
					return fmt.Errorf("%d requests since", served-at)
				}
				return nil
			})
		})
	}
	close(stop)
	group.Wait()
	if len(failures) > 0 {
		t.Errorf("%d of %d requests failed four times over, first: %s", len(failures), served, failures[0])
	}
}

// Edges move to the other replica, which takes writes and tells of them.
func controlPlaneDies(t *testing.T, p platform) {
	for _, replica := range []string{"controlplane-1", "controlplane-2"} {
		kill(t, replica, func() {
			var made struct{ Key string }
			p.make(t, "/v1/auth/keys", p.dev["SLUICE_SESSION_TOKEN"], replica, map[string]any{"name": replica, "scopes": []string{"streams:read"}}, &made)
			for range 6 {
				eventually(t, "a key of the other replica works", func() error { return p.gives(http.MethodGet, "/v1/streams", made.Key, 200) })
			}
		})
	}
}

// What was due runs all the same.
func workerDies(t *testing.T, p platform) {
	for _, worker := range []string{"worker-1", "worker-2"} {
		kill(t, worker, func() {
			var made struct{ ID string }
			p.make(t, "/v1/events/schedules", p.dev["SLUICE_API_KEY"], worker, map[string]any{"name": worker, "type": "custom", "webhook": map[string]any{"payload": map[string]any{"eventName": worker}},
				"schedule": map[string]any{"type": "one_time", "executeAt": time.Now().Add(15 * time.Second).UTC().Format(time.RFC3339)}}, &made)
			p.ran(t, made.ID)
		})
	}
}

// ran waits until the schedule has run once.
func (p platform) ran(t *testing.T, id string) {
	t.Helper()
	eventually(t, "the schedule runs", func() error {
		a, err := ask(http.MethodGet, p.gateway+"/v1/events/schedules/"+id+"/executions", p.dev["SLUICE_API_KEY"], nil)
		if err == nil && strings.Count(string(a.Text), `"status":"success"`) != 1 {
			err = errors.New(string(a.Text))
		}
		return err
	})
}

// Edges go on to decide; what was stored is there again afterwards.
func databaseDies(t *testing.T, p platform) {
	var made struct{ ID string }
	p.make(t, "/v1/streams", p.dev["SLUICE_API_KEY"], "kept", map[string]any{"title": "kept", "protocol": "rtmp"}, &made)
	kill(t, "postgres", func() {
		for range 6 {
			if err := p.gives(http.MethodGet, "/v1/streams", "", 401); err != nil {
				t.Error(err)
			}
			if err := p.gives(http.MethodGet, "/v1/nowhere", p.dev["SLUICE_API_KEY"], 403); err != nil {
				t.Error(err)
			}
		}
	})
	eventually(t, "the stream is still there", func() error { return p.gives(http.MethodGet, "/v1/streams/"+made.ID, p.dev["SLUICE_API_KEY"], 200) })
}
