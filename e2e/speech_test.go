package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// talk is ten seconds of a reading that stands beside the engine: "Ever tried. Ever
// failed. No matter. Try again. Fail again. Fail better."
func talk(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(filepath.Dir(need(t, "SLUICE_SPEECH")), "beckett.wav"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// captionsOf is what a list of captions says.
type captionsOf struct {
	Data []struct {
		Status   string
		Progress int
		URL      string
	}
}

// enginesOf is what the registry says of engines.
type enginesOf struct {
	Products []struct {
		Name, State string
		Engine      *struct{ Use, Health, Version string }
	}
}

// engine is what the registry says of a product's engine.
func (s *stack) engine(t testing.TB, name string) string {
	t.Helper()
	for _, p := range into[enginesOf](t, call(t, http.MethodGet, s.url("/.well-known/platform-products.json"), "", nil)).Products {
		if p.Name == name && p.Engine != nil {
			return p.State + " " + p.Engine.Use + " " + p.Engine.Health + " " + p.Engine.Version
		}
	}
	return ""
}

// engineKey is the credential of the engine that a document names.
const engineKey = "the engine's own key"

// Speech is transcribed through the gateway and the runtime, and of a video by a worker,
// by the built-in engine; then by the one that a document names, until it goes away.
func TestSpeechToText(t *testing.T) {
	t.Parallel()
	need(t, "SLUICE_FFMPEG")
	s := lentStack(t)
	key, wav := s.dev["SLUICE_API_KEY"], talk(t)
	for _, at := range []string{s.url("/v1/transcribe?format=text"), s.dev["SLUICE_RUNTIME_URL"] + "/v1/transcribe?format=text"} {
		got := post(t, at, key, "application/octet-stream", bytes.NewReader(wav))
		if wantStatus(t, got, 200); !strings.HasPrefix(got.body, "Ever tried") {
			t.Errorf("%s: %q", at, got.body)
		}
	}
	if got := s.engine(t, "transcribe"); !strings.HasPrefix(got, "available builtin ok moonshine") {
		t.Errorf("the registry says %q", got)
	}
	film := post(t, s.url("/v1/vod/upload?title=Talk"), key, "video/mp4", bytes.NewReader(filmOf(t, wav)))
	wantStatus(t, film, 201)
	at := s.url("/v1/vod/" + into[struct{ ID string }](t, film).ID + "/captions")
	wantStatus(t, call(t, http.MethodPost, at, key, map[string]any{"generate": true}), 202)
	var made captionsOf
	eventually(t, "the captions are made", func() error {
		if made = into[captionsOf](t, call(t, http.MethodGet, at, key, nil)); made.Data[0].Status != "ready" {
			return fmt.Errorf("%+v", made)
		}
		return nil
	})
	if vtt := call(t, http.MethodGet, made.Data[0].URL, "", nil); !strings.HasPrefix(vtt.body, "WEBVTT\n\n00:00:0") || !strings.Contains(vtt.body, "Ever tried") {
		t.Errorf("%d %s", vtt.StatusCode, vtt.body)
	}
	s.anotherEngine(t, key, wav)
}

// anotherEngine has a document name an engine at an address.
func (s *stack) anotherEngine(t *testing.T, key string, wav []byte) {
	t.Helper()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+engineKey:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/v1/audio/transcriptions" && r.FormValue("model") == "large":
			fmt.Fprint(w, `{"text": "Said elsewhere."}`)
		}
	}))
	t.Cleanup(other.Close)
	s.apply(t, "include: [builtin]\nengines:\n  transcribe: {url: \""+other.URL+"\", key_from: ENGINE_E2E, model: large}\n")
	says := func(text string) func() error {
		return func() error {
			got := post(t, s.url("/v1/transcribe?format=text"), key, "audio/wav", bytes.NewReader(wav))
			if got.StatusCode != 200 || !strings.HasPrefix(got.body, text) {
				return fmt.Errorf("%d %s", got.StatusCode, got.body)
			}
			return nil
		}
	}
	eventually(t, "the other engine answers", says("Said elsewhere."))
	eventually(t, "the registry names it", func() error {
		if got := s.engine(t, "captions"); got != "available url ok large" {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	other.Close()
	if err := says("Ever tried")(); err != nil {
		t.Errorf("without the other engine: %v", err)
	}
}

// filmOf is a film of a test card and this sound.
func filmOf(t testing.TB, wav []byte) []byte {
	t.Helper()
	in, out := filepath.Join(t.TempDir(), "in.wav"), filepath.Join(t.TempDir(), "out.mp4")
	if err := os.WriteFile(in, wav, 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(need(t, "SLUICE_FFMPEG"), "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=5:duration=10", "-i", in,
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac", "-shortest", out).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
