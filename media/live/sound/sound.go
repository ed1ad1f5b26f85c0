// Package sound brings sound into the media engine and out of it again, as PCM of
// 48 kHz. The engine is spoken to by RTSP on this machine; sound in it is Opus, which
// players of HLS and of WebRTC both understand, or what a stream's publisher has sent.
// ffmpeg converts, confined to a sandbox: what it decodes comes from strangers.
package sound

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/process/sandbox"
)

// Rate is how many frames of sound are a second.
const Rate = 48000

// Block is how many frames are handed on at a time: 20 ms.
const Block = Rate / 50

// Point is a stream in the media engine, and what opens it.
type Point struct {
	Host     string // of the engine's RTSP, with its port
	Path     string // such as live/play_…
	User     string
	Password string
}

// URL is the point's address, without its credentials.
func (p Point) URL() string { return "rtsp://" + p.Host + "/" + p.Path }

// address is the point as the client of RTSP wants it.
func (p Point) address() *base.URL {
	u := base.URL(url.URL{Scheme: "rtsp", User: url.UserPassword(p.User, p.Password), Host: p.Host, Path: "/" + p.Path})
	return &u
}

// client returns one that speaks to the engine by one connection of TCP.
func (p Point) client() *gortsplib.Client {
	tcp := gortsplib.TransportTCP
	return &gortsplib.Client{Scheme: "rtsp", Host: p.Host, Transport: &tcp, UserAgent: "sluice"}
}

// ErrEngine says that the media engine has closed the connection, or not taken it.
var ErrEngine = errors.New("the media engine closed the connection")

// ErrTool says that there is no ffmpeg.
var ErrTool = errors.New("there is no ffmpeg here, which converts sound")

// memory is how much ffmpeg may take for sound, in bytes.
const memory = 1 << 30

// forever is more time on processors than a process will have.
const forever = 10 * 365 * 24 * time.Hour

// convert runs ffmpeg with args between what in writes and out reads, until one of
// them ends or ctx does.
func convert(ctx context.Context, tool ffmpeg.Tool, args []string, in func(context.Context, io.Writer) error, out func(io.Reader) error) error {
	if !tool.Available() {
		return ErrTool
	}
	binary, err := filepath.Abs(tool.Binary)
	if err != nil {
		return fmt.Errorf("find ffmpeg: %w", err)
	}
	folder, err := os.MkdirTemp(tool.Dir, "sluice-sound-")
	if err != nil {
		return fmt.Errorf("make a folder for ffmpeg: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	args = append([]string{"-hide_banner", "-loglevel", "error", "-protocol_whitelist", "pipe", "-fflags", "nobuffer", "-probesize", "5000", "-analyzeduration", "0"}, args...)
	var both sync.WaitGroup
	defer both.Wait() // the one that has not ended ends with ffmpeg, whose pipes are closed
	return sandbox.Job{Program: binary, Args: args, Folder: folder, Memory: memory, CPU: forever, Live: true, Talk: func(w io.Writer, r io.Reader) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 2)
		both.Go(func() { ended <- in(ctx, w) })
		both.Go(func() { ended <- out(r) })
		return <-ended
	}}.Run(ctx)
}

// pcm are ffmpeg's words for sound as this package has it.
func pcm(channels int) []string {
	return []string{"-f", "f32le", "-ar", strconv.Itoa(Rate), "-ac", strconv.Itoa(channels)}
}

// bytesOf appends frames as ffmpeg reads them.
func bytesOf(out []byte, frames []float32) []byte {
	for _, f := range frames {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(f))
	}
	return out
}

// framesOf appends what ffmpeg has written as frames.
func framesOf(out []float32, b []byte) []float32 {
	for ; len(b) >= 4; b = b[4:] {
		out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return out
}
