// Package enginetest runs a real media engine for tests, to which anybody may publish.
package enginetest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
)

// Engine is one that runs until the test's end.
type Engine struct {
	RTMP string // address below which to publish, such as rtmp://127.0.0.1:20000/live
	HLS  string // address below which it serves HLS
}

// settings are those of the product's engine that decide what HLS looks like.
const settings = `logLevel: info
rtsp: no
srt: no
webrtc: no
rtmp: yes
rtmpAddress: 127.0.0.1:%d
hls: yes
hlsAddress: 127.0.0.1:%d
hlsVariant: %s
hlsAlwaysRemux: yes
paths:
  all_others: {}
`

// Start runs the engine that `make test` names.
func Start(t testing.TB) Engine {
	t.Helper()
	return start(t, "fmp4")
}

// StartWithParts runs one that makes parts of segments, of a fifth of a second.
func StartWithParts(t testing.TB) Engine {
	t.Helper()
	return start(t, "lowLatency\nhlsPartDuration: 200ms")
}

func start(t testing.TB, variant string) Engine {
	t.Helper()
	binary := os.Getenv("SLUICE_MEDIA_ENGINE")
	if binary == "" {
		t.Fatal("SLUICE_MEDIA_ENGINE is not set: run `make test`, which builds an engine")
	}
	for range 20 { // a port that somebody else has is left to them
		port := 20000 + 2*rand.IntN(5000)
		if run(t, binary, port, variant) {
			return Engine{RTMP: fmt.Sprintf("rtmp://127.0.0.1:%d/live", port), HLS: fmt.Sprintf("http://127.0.0.1:%d/live", port+1)}
		}
	}
	t.Fatal("the media engine does not start")
	return Engine{}
}

// run starts the engine and says whether it listens.
func run(t testing.TB, binary string, port int, variant string) bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mediamtx.yml")
	if err := os.WriteFile(file, fmt.Appendf(nil, settings, port, port+1, variant), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		_ = cmd.Process.Kill() // it has no state to keep
		_ = cmd.Wait()
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "[HLS] listener opened") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			t.Cleanup(stop)
			return true
		}
	}
	stop()
	return false
}

// Card and Tone are what ffmpeg is to send of pictures, at 320 by 180 pixels with a
// whole one each second, and of sound.
var (
	Card = []string{"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=15"}
	Tone = []string{"-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"}
	H264 = []string{"-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p", "-g", "15"}
	AAC  = []string{"-c:a", "aac"}
)

// Publish sends to a stream, in real time, until the test's end.
func (e Engine) Publish(t testing.TB, stream string, args ...string) {
	t.Helper()
	all := append([]string{"-nostdin", "-hide_banner", "-loglevel", "error", "-re"}, args...)
	cmd := exec.Command(ffmpegtest.Tool(t).Binary, append(all, "-f", "flv", e.RTMP+"/"+stream)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}
