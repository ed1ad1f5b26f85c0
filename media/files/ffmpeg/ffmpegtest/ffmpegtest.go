// Package ffmpegtest finds ffmpeg for tests, and films for it.
package ffmpegtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/files/mp4"
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

// Shown is what a player shows of a film.
type Shown struct {
	Frames  int
	Seconds float64
}

// Look plays a film.
func Look(t testing.TB, film []byte) Shown {
	t.Helper()
	name := filepath.Join(t.TempDir(), "shown")
	if err := os.WriteFile(name, film, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(Tool(t).Binary, "-nostdin", "-loglevel", "error", "-i", name, "-map", "0:v", "-f", "framecrc", "-").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := mp4.Parse(bytes.NewReader(film), int64(len(film)))
	if err != nil {
		t.Fatal(err)
	}
	return Shown{bytes.Count(out, []byte("\n0, ")), info.Duration.Seconds()}
}
