// Package ffmpegtest finds ffmpeg for tests, and films for it.
package ffmpegtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/media/files/ffmpeg"
)

// Tool is the ffmpeg that `make test` names, or the machine's own.
func Tool(t testing.TB) ffmpeg.Tool {
	t.Helper()
	binary := os.Getenv("SLUICE_FFMPEG")
	if binary == "" {
		var err error
		if binary, err = exec.LookPath("ffmpeg"); err != nil {
			t.Fatal("there is no ffmpeg: run `make test`, which fetches one")
		}
	}
	return ffmpeg.Tool{Binary: binary, Dir: t.TempDir()}
}

// Film makes a test card with a tone: two seconds, 320 by 240 pixels, as format, a
// name of ffmpeg's such as mp4.
func Film(t testing.TB, format string) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "film")
	cmd := exec.Command(Tool(t).Binary, "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=10:duration=2",
		"-f", "lavfi", "-i", "sine=duration=2", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "10", "-c:a", "aac", "-f", format, name)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	film, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return film
}
