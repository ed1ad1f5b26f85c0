package demo

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// served is an address at which ffmpeg's film of two seconds can be had.
func served(t *testing.T, args ...string) (ffmpeg, address string) {
	t.Helper()
	if ffmpeg = os.Getenv("SLUICE_FFMPEG"); ffmpeg == "" {
		t.Fatal("SLUICE_FFMPEG is not set: run `make test`")
	}
	name := filepath.Join(t.TempDir(), "film.mp4")
	all := append([]string{"-nostdin", "-loglevel", "error"}, args...)
	if out, err := exec.Command(ffmpeg, append(all, "-t", "2", "-shortest", name)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, name) }))
	t.Cleanup(server.Close)
	return ffmpeg, server.URL
}

func TestWhatIsSeen(t *testing.T) {
	t.Parallel()
	moving, still := []string{"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"}, []string{"-f", "lavfi", "-i", "color=red:size=320x180:rate=25"}
	tone, silence := []string{"-f", "lavfi", "-i", "sine=frequency=440"}, []string{"-f", "lavfi", "-i", "anullsrc"}
	for name, c := range map[string]struct {
		args  []string
		fails string
	}{
		"a film":                   {append(moving, tone...), ""},
		"one whose picture stands": {append(still, tone...), "do not move"},
		"one without a sound":      {append(moving, silence...), "nothing can be heard"},
		"one without a track":      {moving, "ffmpeg"},
		"one that stops":           {append([]string{"-t", "0.5"}, append(moving, tone...)...), "too few pictures"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ffmpeg, address := served(t, c.args...)
			tour := &tour{Config: Config{FFmpeg: ffmpeg, HTTP: http.DefaultClient}}
			saw, err := tour.see(t.Context(), address, 2)
			if c.fails == "" {
				if err != nil || !strings.HasPrefix(saw, "50 pictures, 50 different, sound of -") {
					t.Errorf("%q, %v", saw, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%q, %v", saw, err)
			}
		})
	}
}

func TestCuesAreReadAndUnderstood(t *testing.T) {
	t.Parallel()
	text, cues := cuesOf("WEBVTT\n\n1\n00:00.000 --> 00:02.000 align:start\nThe stream starts\nin the evening.\n\nNOTE no cue\n\n00:02.500 --> 00:04.000\nEverybody is invited\n")
	if text != "The stream starts in the evening. / Everybody is invited" || cues != 2 {
		t.Errorf("%d %q", cues, text)
	}
	if n, all := understood(text); all != 15 || n != 9 {
		t.Errorf("%d of %d", n, all)
	}
	if n, _ := understood("Something else was said."); n != 0 {
		t.Errorf("%d", n)
	}
}

// What works is printed with what was seen; the first that does not ends the film.
func TestTheFilmEndsAtTheFirstStepThatFails(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		if r.URL.Path == "/v1/voice" {
			w.WriteHeader(501)
			fmt.Fprint(w, `{"error":{"code":"not_implemented","message":"There is no engine for speech synthesis here."}}`)
			return
		}
		var list []string
		for _, name := range []string{"srt", "hls", "dash", "webrtc", "voice", "captions", "clips", "editor"} {
			list = append(list, `{"name":"`+name+`","state":"available","engine":{"version":"own 1"}}`)
		}
		fmt.Fprint(w, `{"products":[`+strings.Join(list, ",")+`]}`)
	}))
	t.Cleanup(server.Close)
	var out bytes.Buffer
	err := RunAll(context.Background(), Config{Gateway: server.URL, Key: "key", FFmpeg: "/bin/false", Out: &out})
	if err == nil || !strings.HasPrefix(err.Error(), "step 2, Voice: ") || !strings.Contains(err.Error(), "no engine for speech synthesis") {
		t.Error(err)
	}
	if strings.Count(out.String(), "\n") != 1 || !strings.HasPrefix(out.String(), " 1. Engines     all are there, srt by own 1") || len(asked) != 2 {
		t.Errorf("%s\n%v", out.String(), asked)
	}
	if err := RunAll(context.Background(), Config{Gateway: server.URL, Out: &out}); err == nil || !strings.Contains(err.Error(), "SLUICE_FFMPEG") {
		t.Error(err)
	}
}
