package demo

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"net/http"
	"os/exec"
	"strconv"
)

// load gets an address as a viewer does.
func (t *tour) load(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	return t.do(req)
}

// ffmpeg runs it to its end and returns what it writes.
func (t *tour) ffmpeg(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.FFmpeg, append([]string{"-nostdin", "-hide_banner", "-loglevel", "error"}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ffmpeg: %w: %.300s", err, said.String())
	}
	return out, nil
}

// see plays so many seconds of an address as ffmpeg decodes them, and says what there was.
// It fails when pictures do not move, or nothing can be heard.
func (t *tour) see(ctx context.Context, address string, seconds int) (string, error) {
	if err := until(ctx, patience, func() error { _, err := t.load(ctx, address); return err }); err != nil {
		return "", err
	}
	const width, height = 64, 36
	args := []string{"-i", address, "-t", strconv.Itoa(seconds)}
	pictures, err := t.ffmpeg(ctx, append(args, "-map", "0:v:0", "-vf", fmt.Sprintf("scale=%d:%d,format=gray", width, height), "-fps_mode", "passthrough", "-f", "rawvideo", "-")...)
	if err != nil {
		return "", err
	}
	seen, seed, n := map[uint64]bool{}, maphash.MakeSeed(), 0
	for ; len(pictures) >= width*height; n++ {
		seen[maphash.Bytes(seed, pictures[:width*height])] = true
		pictures = pictures[width*height:]
	}
	sound, err := t.ffmpeg(ctx, append(args, "-map", "0:a:0", "-ac", "1", "-ar", "8000", "-f", "s16le", "-")...)
	if err != nil {
		return "", err
	}
	loud := loudness(sound)
	saw := fmt.Sprintf("%d pictures, %d different, sound of %.0f dB", n, len(seen), loud)
	switch {
	case n < 10*seconds:
		return "", errors.New("too few pictures: " + saw)
	case len(seen) < n/2:
		return "", errors.New("the pictures do not move: " + saw)
	case loud < -50:
		return "", errors.New("nothing can be heard: " + saw)
	}
	return saw, nil
}

// loudness is the level of samples of 16 bits, in dB below the loudest.
func loudness(pcm []byte) float64 {
	var power float64
	for i := 0; i+2 <= len(pcm); i += 2 {
		v := float64(int16(binary.LittleEndian.Uint16(pcm[i:]))) / math.MaxInt16
		power += v * v
	}
	return 10 * math.Log10(power/max(1, float64(len(pcm)/2))+1e-12)
}
