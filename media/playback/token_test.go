package playback

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"sluice.dev/sluice/media/api/form"
)

func TestHowLongATokenHolds(t *testing.T) {
	t.Parallel()
	good := map[string]int{"": 3600, "{}": 3600, `{"expires_in":null}`: 3600, `{"expires_in":10}`: 10, `{"expires_in":604800,"viewer":"ann"}`: 604800}
	for body, want := range good {
		in, err := tokenInput(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body)))
		if err != nil || *in.ExpiresIn != want {
			t.Errorf("%s: %+v, %v", body, in, err)
		}
	}
	for _, body := range []string{"x", "[]", `{"expires_in":9}`, `{"expires_in":604801}`, `{"expires_in":"1h"}`, `{"viewer":"` + strings.Repeat("x", 201) + `"}`, `{"ttl":1}`} {
		if in, err := tokenInput(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body))); err == nil {
			t.Errorf("%s: %+v", body, in)
		}
	}
}

func TestWhichFilesOfTheEngineAreServed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"index.m3u8", "main_stream.m3u8", "video1_stream.m3u8", "seg-12.mp4", "abc_init.mp4", "seg7.ts"} {
		if !fileName.MatchString(name) {
			t.Errorf("%s is not", name)
		}
	}
	for _, name := range []string{"", "..", ".m3u8", "../index.m3u8", "a/b.mp4", "index.m3u8\n", "config.yml", "index.html", "a.mp4.txt", strings.Repeat("a", 200) + ".ts"} {
		if fileName.MatchString(name) {
			t.Errorf("%q is", name)
		}
	}
}

func TestHowLargeAnEmbedIs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 640, "64": 64, "7680": 7680} {
		var f form.Form
		if got := f.Number(url.Values{"width": {text}}, "width", 640, minPixels, maxPixels); got != want || f.Err() != nil {
			t.Errorf("%q: %d, %v", text, got, f.Err())
		}
	}
	for _, text := range []string{"63", "7681", "-1", "wide", "64px", "1e3"} {
		var f form.Form
		if f.Number(url.Values{"width": {text}}, "width", 640, minPixels, maxPixels); f.Err() == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
