// Package ffmpeg converts video files with ffmpeg, in a sandbox of its own, because
// the files come from strangers: no network and no files but a folder of its own, a
// clean environment, arguments without a shell, no protocol but files, no format that
// leads to other files, bounds on time, processor, memory and output, and all that it
// started killed at the end.
package ffmpeg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/process/sandbox"
)

// Tool is an ffmpeg.
type Tool struct {
	Binary string // empty: there is none
	Dir    string // where files are kept for the time of a conversion; empty: os.TempDir
}

// Available reports whether there is an ffmpeg.
func (t Tool) Available() bool { return t.Binary != "" }

// Bounds of one conversion.
const (
	maxMemory = 4 << 30 // bytes of data
	maxSaid   = 4 << 10 // bytes of its complaints that are kept, for the log
)

// ErrFile says that ffmpeg could make nothing of a file.
var ErrFile = errors.New("ffmpeg cannot convert the file")

// errNothing says that a run that succeeded has left no result.
var errNothing = errors.New("it wrote nothing")

// Folder is a folder for one conversion. Its Close removes it with all in it.
type Folder struct{ Path string }

// NewFolder makes one.
func (t Tool) NewFolder() (Folder, error) {
	path, err := os.MkdirTemp(t.Dir, "sluice-ffmpeg-")
	if err != nil {
		return Folder{}, fmt.Errorf("make a folder for ffmpeg: %w", err)
	}
	return Folder{path}, nil
}

// Keep copies src into a new file of a folder.
func Keep(name string, src io.Reader) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep source: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(f, src); err != nil {
		return fmt.Errorf("keep source: %w", err)
	}
	return f.Close()
}

// Input is where the file to convert is put.
func (f Folder) Input() string { return filepath.Join(f.Path, "input") }

// Output is where the result is found.
func (f Folder) Output() string { return filepath.Join(f.Path, "output") }

// Close removes the folder.
func (f Folder) Close() error { return os.RemoveAll(f.Path) }

// Run converts the input in f by recipe. The result is at most maxOutput bytes long
// (0: any length), else it fails with STORAGE_001. Within limit it ends, or it fails
// with gateway_timeout. A file that ffmpeg makes nothing of is STORAGE_002, with
// ErrFile and what ffmpeg said as the cause.
func (t Tool) Run(ctx context.Context, f Folder, r Recipe, maxOutput int64, limit time.Duration) error {
	if !t.Available() {
		return apierror.Errorf(decision.NotImplemented, "There is no ffmpeg here: videos are not converted.")
	}
	if maxOutput == 0 {
		maxOutput = math.MaxInt64
	}
	binary, err := filepath.Abs(t.Binary)
	if err != nil {
		return fmt.Errorf("find ffmpeg: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	said := &sandbox.Tail{Most: maxSaid}
	job := sandbox.Job{Program: binary, Args: r.args(), Folder: f.Path, Memory: memory(), FileSize: maxOutput,
		CPU: limit * time.Duration(runtime.NumCPU()), Stderr: said}
	if r.report != nil {
		job.Talk = r.listen
	}
	err = job.Run(ctx)
	if err == nil && r.silent {
		return nil
	}
	info, missing := os.Stat(f.Output())
	switch {
	case err != nil && missing == nil && info.Size() >= maxOutput:
		return tooLarge()
	case err != nil:
		return failure(ctx, err, said.String())
	case missing != nil || info.Size() == 0:
		return failure(ctx, errNothing, said.String())
	case info.Size() > maxOutput:
		return tooLarge()
	}
	return nil
}

// memory is how much ffmpeg may take: half of what the container may, so that the
// kernel ends ffmpeg and nothing else, and at most maxMemory.
var memory = sync.OnceValue(func() int64 {
	text, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	if err != nil {
		return maxMemory
	}
	most, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil { // max
		return maxMemory
	}
	return min(most/2, maxMemory)
})

// failure says what a failed run means to whoever sent the file.
func failure(ctx context.Context, err error, said string) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &apierror.Error{Code: decision.GatewayTimeout, Message: "The conversion took too long.", Cause: err}
	case ctx.Err() != nil:
		return ctx.Err()
	case sandbox.Failed(err):
		return fmt.Errorf("run ffmpeg: %w: %s", err, said)
	}
	return &apierror.Error{Code: decision.Storage002, Message: "The file is not accepted: it cannot be converted.", Cause: fmt.Errorf("%w: %w: %s", ErrFile, err, said)}
}

// tooLarge says that a result passed its bound, which the kernel holds.
func tooLarge() error {
	return apierror.Errorf(decision.Storage001, "The result is larger than is allowed.")
}
