//go:build clients

package e2e

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The implementation of moq-dev (Rust, by its bindings for Python) speaks other drafts
// too, and settles with us on draft 14.
var moqInPython = program{"moq-python", "requirements.txt", pipInstall, pythonMain}

// onMoQ is a stream with what MoQ needs of it.
type onMoQ struct {
	ID         string
	Status     string
	PlaybackID string `json:"playback_id"`
	Ingest     struct {
		MoQ struct {
			URL string
			Key string `json:"stream_key"`
		}
	}
	Playback struct {
		HLS    string   `json:"hls_url"`
		URL    string   `json:"moq_url"`
		Hashes []string `json:"moq_certificate_hashes"`
	}
}

// moqSeen is what the client has seen of a track.
type moqSeen struct {
	Codec     string
	Frames    int
	Seconds   float64
	BeginsKey bool `json:"begins_with_key"`
}

// What a client of another implementation publishes by MoQ plays by HLS, and by MoQ
// in another one.
func TestMoQWithAnotherImplementation(t *testing.T) {
	t.Parallel()
	s := studio(t)
	key := s.dev["SLUICE_API_KEY"]
	r := call(t, http.MethodPost, s.url("/v1/streams"), key, map[string]any{"title": t.Name(), "protocol": "moq", "playback_policy": "signed"})
	wantStatus(t, r, http.StatusCreated)
	show := into[onMoQ](t, r)
	hashes := "HASHES=" + strings.Join(show.Playback.Hashes, ",")

	film := filepath.Join(t.TempDir(), "film.mp4")
	ffmpeg := need(t, "SLUICE_FFMPEG")
	encoder := exec.Command(ffmpeg, "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=15:duration=240", "-f", "lavfi", "-i", "sine=duration=240",
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "15", "-c:a", "aac", "-movflags", "empty_moov+default_base_moof", "-frag_duration", "60000", film)
	if out, err := encoder.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir := installed(t, moqInPython.name, moqInPython.lock, moqInPython.install)
	publisher := exec.Command(filepath.Join(dir, pythonMain[0]), pythonMain[1])
	publisher.Dir = dir
	publisher.Env = append(os.Environ(), "URL="+show.Ingest.MoQ.URL+"/"+show.Ingest.MoQ.Key, hashes, "STREAM="+show.PlaybackID, "FILM="+film, "SECONDS_OF_FILM=240")
	p := running(t, publisher)
	t.Cleanup(p.Kill)
	eventually(t, "the stream is on air", func() error {
		r := call(t, http.MethodGet, s.url("/v1/streams/"+show.ID), key, nil)
		if got := into[onMoQ](t, r).Status; got != "live" {
			return errors.New(got)
		}
		return nil
	})

	r = call(t, http.MethodPost, s.url("/v1/streams/"+show.ID+"/tokens"), key, nil)
	wantStatus(t, r, http.StatusCreated)
	token := into[struct {
		HLS string `json:"hls_url"`
		MoQ string `json:"moq_url"`
	}](t, r)
	eventually(t, "HLS plays", func() error {
		return exec.Command(ffmpeg, "-nostdin", "-loglevel", "error", "-xerror", "-i", token.HLS, "-t", "1", "-f", "null", "-").Run()
	})
	seen := intoText[map[string]moqSeen](t, moqInPython.prints(t, "URL="+token.MoQ, hashes, "STREAM="+show.PlaybackID))
	for track, codec := range map[string]string{"video": "avc1", "audio": "mp4a.40.2"} {
		got := seen[track]
		if got.Frames != 40 || !got.BeginsKey || !strings.HasPrefix(got.Codec, codec) || got.Seconds < 0.5 {
			t.Errorf("%s: %+v", track, got)
		}
	}
}
