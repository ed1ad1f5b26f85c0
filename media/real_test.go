package media_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"sluice.dev/sluice/e2e/freeport"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/live/engine"
)

// patience is how long a test waits for programs that are slow on a busy machine.
const patience = 90 * time.Second

// await looks again and again until ok.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	late := time.After(patience)
	for !ok() {
		select {
		case <-again.C:
		case <-late:
			t.Fatal("it never came")
		}
	}
}

// addrs are n addresses of this machine that nobody else uses.
func addrs(t *testing.T, n int) []string {
	t.Helper()
	list, err := freeport.Addrs(n)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// listens reports whether somebody takes connections at addr.
func listens(addr string) bool {
	c, err := net.Dial("tcp", addr)
	return err == nil && c.Close() == nil
}

// engineAt is the MediaMTX that `make test` names, at the first seven addresses.
func engineAt(t *testing.T, at []string) engine.Config {
	t.Helper()
	binary := os.Getenv("SLUICE_MEDIA_ENGINE")
	if binary == "" {
		t.Fatal("there is no media engine: run `make test`, which builds one")
	}
	return engine.Config{Binary: binary, Dir: t.TempDir(), Output: io.Discard,
		RTMP: at[0], SRT: at[1], HLS: at[2], WebRTC: at[3], Media: at[4], API: at[5], RTSP: at[6]}
}

// runEngine runs the engine's process beside the product until the end of the test, or
// until stop is called. It returns once publishers and viewers can come.
func (b *bundle) runEngine(e engine.Config, beside media.Beside) (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- media.RunEngine(ctx, b.config, e, beside) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("the engine's process: %v", err)
		}
	})
	await(b.t, func() bool { return listens(e.RTMP) && listens(e.HLS) && listens(e.API) })
	return cancel
}

// sound is what ffmpeg hears at rate samples a second, one channel after the other.
func sound(t *testing.T, ffmpeg string, rate, channels int, args ...string) ([][]float64, error) {
	t.Helper()
	args = append(append([]string{"-nostdin", "-hide_banner", "-loglevel", "error"}, args...), "-vn", "-ar", fmt.Sprint(rate), "-ac", fmt.Sprint(channels), "-f", "f32le", "-")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, ffmpeg, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	raw, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said.String())
	}
	out := make([][]float64, channels)
	for i := 0; i+4 <= len(raw); i += 4 {
		c := i / 4 % channels
		out[c] = append(out[c], float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[i:]))))
	}
	return out, err
}

// share is how much of a sound's power is at a frequency (Goertzel), from 0 to 1, on
// average over tenths of a second: clocks that differ shift its phase. The first half
// second is left out: decoders begin softly.
func share(s []float64, rate int, hz float64) float64 {
	window := rate / 10
	var sum float64
	var n int
	for at := rate / 2; at+window <= len(s); at += window {
		var power, re, im float64
		for i, v := range s[at : at+window] {
			angle := 2 * math.Pi * hz * float64(i) / float64(rate)
			power += v * v
			re += v * math.Cos(angle)
			im += v * math.Sin(angle)
		}
		if n++; power > 0 {
			sum += 2 * (re*re + im*im) / float64(window) / power
		}
	}
	return sum / float64(max(n, 1))
}

// most is a share that nothing but the tone itself has: of another it is next to 0. A
// machine that is busy with other tests lets some of it fall silent.
const most = 0.5
