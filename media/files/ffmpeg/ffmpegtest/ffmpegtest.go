// Package ffmpegtest finds ffmpeg for tests, and films for it.
package ffmpegtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
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

// Plain makes a film of one colour, such as red or 0x102030, and a sine tone of 440 Hz; gain
// is the tone's in dB, from a peak of an eighth. Its picture is of width by height pixels, at
// 30 a second.
func Plain(t testing.TB, colour string, seconds float64, width, height int, gain float64) []byte {
	t.Helper()
	return Make(t, "-f", "lavfi", "-i", fmt.Sprintf("color=c=%s:s=%dx%d:r=30:d=%f,format=rgb24,scale=out_color_matrix=bt709:out_range=tv,format=yuv420p", colour, width, height, seconds),
		"-f", "lavfi", "-i", fmt.Sprintf("sine=f=440:d=%f,volume=%fdB", seconds, gain), "-c:v", "libx264", "-preset", "ultrafast", "-crf", "10",
		"-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-c:a", "aac")
}

// Make makes an MP4 by ffmpeg's arguments.
func Make(t testing.TB, args ...string) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "film")
	args = append(append([]string{"-nostdin", "-loglevel", "error"}, args...), "-f", "mp4", name)
	if out, err := exec.Command(Tool(t).Binary, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	film, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return film
}

// Pixels decodes a film and gives the colours of its pictures, size by size pixels after
// scaling, in rows: three bytes each.
func Pixels(t testing.TB, film []byte, size int) [][]byte {
	t.Helper()
	raw := decode(t, film, "-map", "0:v:0", "-vf", fmt.Sprintf("scale=%d:%d:flags=neighbor", size, size), "-fps_mode", "passthrough", "-pix_fmt", "rgb24", "-f", "rawvideo")
	var frames [][]byte
	for n := size * size * 3; len(raw) >= n; raw = raw[n:] {
		frames = append(frames, raw[:n])
	}
	return frames
}

// Still is the picture at a place in a film, in seconds, as JPEG, width pixels wide.
func Still(t testing.TB, film []byte, at string, width int) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "film")
	if err := os.WriteFile(name, film, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(Tool(t).Binary, "-nostdin", "-loglevel", "error", "-ss", at, "-i", name, "-vf", fmt.Sprintf("scale=%d:-2", width),
		"-map", "0:v:0", "-frames:v", "1", "-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-map_metadata", "-1", "-f", "image2pipe", "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Samples decodes a film's sound: one channel, 48,000 samples a second, from -1 to 1.
func Samples(t testing.TB, film []byte) []float32 {
	t.Helper()
	raw := decode(t, film, "-map", "0:a:0", "-ac", "1", "-ar", "48000", "-f", "f32le")
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

// decode runs ffmpeg on a film and returns what it writes.
func decode(t testing.TB, film []byte, args ...string) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "film")
	if err := os.WriteFile(name, film, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(Tool(t).Binary, append(append([]string{"-nostdin", "-loglevel", "error", "-i", name}, args...), "-")...)
	cmd.Stderr = &said
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	return raw
}
