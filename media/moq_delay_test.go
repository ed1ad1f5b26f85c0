//go:build delay

package media_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/media/live/moq/client"
	"sluice.dev/sluice/media/live/moq/packaging"
)

// frames knows when each frame was published.
type frames struct {
	sync.Mutex
	at map[[32]byte]time.Time
}

// mark is what a frame is known by: its last NAL unit, which the engine leaves alone.
func mark(f packaging.Frame) [32]byte {
	units, err := f.NALUnits()
	if err != nil || len(units) == 0 {
		return [32]byte{}
	}
	return sha256.Sum256(units[len(units)-1])
}

func (f *frames) sent(frame packaging.Frame) {
	f.Lock()
	defer f.Unlock()
	f.at[mark(frame)] = time.Now()
}

func (f *frames) since(frame packaging.Frame) (time.Duration, bool) {
	f.Lock()
	defer f.Unlock()
	at, ok := f.at[mark(frame)]
	return time.Since(at), ok
}

// TestDelay prints how long a frame that is published by MoQ takes until it can be had
// by MoQ, and by HLS.
func TestDelay(t *testing.T) {
	s := newStage(t)
	show := s.show(object{"protocol": "moq"})
	known := &frames{at: map[[32]byte]time.Time{}}
	s.sent = known.sent
	_, stop := s.broadcast(show)
	defer stop()
	await(t, func() bool { return s.live(show) })
	viewer := s.watch(show, show.text("playback.moq_url"), client.Viewer{})
	track := s.take(viewer, show, "video")
	var byMoQ, byHLS []time.Duration
	for len(byMoQ) < 300 {
		chunk, err := packaging.ParseChunk(s.next(track).Payload)
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := known.since(chunk[0]); ok {
			byMoQ = append(byMoQ, d)
		}
	}
	front := httptest.NewServer(s.handler)
	defer front.Close()
	folder := front.URL + "/v1/playback/" + show.text("playback_id") + "/"
	seen := map[string]bool{}
	for first := true; len(byHLS) < 200; {
		for _, name := range segments(t, folder) {
			if seen[name] {
				continue
			}
			seen[name] = true
			chunk, err := packaging.ParseChunk([]byte(get(t, folder+name)))
			for _, f := range chunk {
				if d, ok := known.since(f); ok && err == nil && !first {
					byHLS = append(byHLS, d)
				}
			}
		}
		first = false
	}
	for name, list := range map[string][]time.Duration{"MoQ": byMoQ, "HLS": byHLS} {
		slices.Sort(list)
		fmt.Printf("%s: %d frames, median %s, p95 %s\n", name, len(list), list[len(list)/2].Round(100*time.Microsecond), list[len(list)*95/100].Round(100*time.Microsecond))
	}
}

// segments are those of the video's playlist.
func segments(t *testing.T, folder string) (names []string) {
	t.Helper()
	for line := range strings.Lines(get(t, folder+"index.m3u8")) {
		if strings.HasPrefix(line, "video") || !strings.HasPrefix(line, "#") && strings.Contains(line, "m3u8") {
			for file := range strings.Lines(get(t, folder+strings.TrimSpace(line))) {
				if !strings.HasPrefix(file, "#") {
					names = append(names, path.Base(strings.TrimSpace(file)))
				}
			}
			return names
		}
	}
	return nil
}

func get(t *testing.T, address string) string {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
