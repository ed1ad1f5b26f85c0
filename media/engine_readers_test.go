package media_test

import (
	"strings"
	"testing"
)

// Whoever reads a stream from this machine itself, past our proxy, gets none of it: behind
// a TCP proxy every stranger has a loopback address. Its viewers come by HLS, with what
// the product has checked.
func TestNobodyReadsFromTheEngineItself(t *testing.T) {
	t.Parallel()
	a := onAir(t, nil)
	show := a.do("POST", "/v1/streams", object{"title": "Show"}).want(201)
	at := a.rtmp + "/live/" + show.text("playback_id")
	_, key, _ := strings.Cut(show.text("ingest.rtmp.stream_key"), "?")
	start(t, a.tool, "-nostdin", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=160x120:rate=10", "-f", "lavfi", "-i", "sine",
		"-c:v", "libx264", "-preset", "ultrafast", "-g", "10", "-pix_fmt", "yuv420p", "-c:a", "aac", "-f", "flv", at+"?"+key)
	playlist := "/v1/playback/" + show.text("playback_id") + "/index.m3u8"
	await(t, func() bool { return a.fetch(playlist).status == 200 })
	if heard := a.heard("1", 1, "-i", a.viewer.URL+playlist); len(heard[0]) == 0 {
		t.Error("nothing is heard by HLS")
	}
	for name, address := range map[string]string{"without a key": at, "with the publisher's": at + "?" + key} {
		heard, err := sound(t, a.tool, 48000, 1, "-rw_timeout", "10000000", "-i", address, "-t", "1")
		if err == nil || len(heard[0]) > 0 {
			t.Errorf("by RTMP, %s: %d samples, %v", name, len(heard[0]), err)
		}
	}
}
