package e2e

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// A process that may hold 4 MiB of bodies refuses a larger one that it would
// have to keep, and passes on an upload of any size. What was in flight is taken off
// again.
func TestBodiesInFlight(t *testing.T) {
	t.Parallel()
	s := own(t, map[string]string{"SLUICE_MAX_BODIES": "4194304", "SLUICE_FFMPEG": need(t, "SLUICE_FFMPEG")})
	key, runtime := s.dev["SLUICE_API_KEY"], "http://"+s.env["SLUICE_RUNTIME_ADDR"]
	chat := func(n int) response {
		return call(t, http.MethodPost, runtime+"/v1/chat/completions", key, map[string]any{
			"model": "echo-1", "max_completion_tokens": 1,
			"messages": []any{map[string]string{"role": "user", "content": strings.Repeat("x", n)}},
		})
	}
	wantStatus(t, chat(100<<10), 200)
	wantError(t, chat(5<<20), http.StatusRequestEntityTooLarge, "request_too_large")
	for _, to := range []string{s.url("/v1/vod/upload"), runtime + "/v1/transcode?profile=240p"} {
		req, err := http.NewRequest(http.MethodPost, to, strings.NewReader("\x00\x00\x00\x08ftyp"+strings.Repeat("x", 9<<20)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/octet-stream")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if !strings.Contains(string(text), "STORAGE_002") { // it was read to its end, and is no video
			t.Errorf("an upload to %s: %d %s", to, res.StatusCode, text)
		}
	}
	for _, process := range []string{"SLUICE_ADMIN_ADDR", "SLUICE_RUNTIME_LISTEN", "SLUICE_MEDIA_LISTEN"} {
		r := call(t, http.MethodGet, "http://"+s.env[process]+"/metrics", "", nil)
		for _, want := range []string{"sluice_bodies_bytes 0", "sluice_bodies_most_bytes 4.194304e+06"} {
			if !regexp.MustCompile(fmt.Sprintf(`(?m)^%s$`, regexp.QuoteMeta(want))).MatchString(r.body) {
				t.Errorf("%s does not show %s", process, want)
			}
		}
	}
}
