// Package ffmpeg converts video files with ffmpeg, a process of its own that is
// held tight, because the files come from strangers: arguments without a shell, a
// folder and an environment of its own, no protocol but files, no format that leads
// to other files, bounds on time, processor, memory and output, and the whole
// process group killed at the end.
package ffmpeg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/filters/decision"
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
	maxMemory = 4 << 30 // bytes of address space
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

// Input is where the file to convert is put.
func (f Folder) Input() string { return filepath.Join(f.Path, "input") }

// Output is where the result is found.
func (f Folder) Output() string { return filepath.Join(f.Path, "output") }

// Close removes the folder.
func (f Folder) Close() error { return os.RemoveAll(f.Path) }

// Run converts the input in f by recipe. The result is at most maxOutput bytes
// long, else it fails with STORAGE_001. Within limit it ends, or it fails with
// gateway_timeout. A file that ffmpeg makes nothing of is STORAGE_002, with
// ErrFile and what ffmpeg said as the cause.
func (t Tool) Run(ctx context.Context, f Folder, r Recipe, maxOutput int64, limit time.Duration) error {
	if !t.Available() {
		return controlplane.Errorf(decision.NotImplemented, "There is no ffmpeg here: videos are not converted.")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var said tail
	if err := t.start(ctx, f, r, maxOutput, limit, &said); err != nil {
		return failure(ctx, err, said.String())
	}
	info, err := os.Stat(f.Output())
	if err != nil || info.Size() == 0 {
		return failure(ctx, errNothing, said.String())
	}
	if info.Size() > maxOutput {
		return tooLarge()
	}
	return nil
}

// start runs ffmpeg to its end.
func (t Tool) start(ctx context.Context, f Folder, r Recipe, maxOutput int64, limit time.Duration, said *tail) error {
	// The kernel ties Pdeathsig to the thread that forks, not to the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, t.Binary, r.args()...)
	cmd.Dir = f.Path
	cmd.Env = []string{"HOME=" + f.Path, "TMPDIR=" + f.Path, "LC_ALL=C"}
	cmd.Stderr = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	confine(cmd.Process.Pid, maxOutput, limit)
	return cmd.Wait()
}

// confine sets the bounds that the kernel holds. A process that has ended already
// needs none.
func confine(pid int, maxOutput int64, limit time.Duration) {
	for resource, most := range map[int]uint64{
		unix.RLIMIT_FSIZE: uint64(maxOutput), unix.RLIMIT_AS: maxMemory, unix.RLIMIT_CORE: 0,
		unix.RLIMIT_CPU: uint64(limit.Seconds())*uint64(runtime.NumCPU()) + 1,
	} {
		_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
	}
}

// failure says what a failed run means to whoever sent the file.
func failure(ctx context.Context, err error, said string) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &controlplane.Error{Code: decision.GatewayTimeout, Message: "The conversion took too long.", Cause: err}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	exit, ran := errors.AsType[*exec.ExitError](err)
	if ran && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGXFSZ {
		return tooLarge()
	}
	if !ran && said == "" && !errors.Is(err, errNothing) {
		return fmt.Errorf("run ffmpeg: %w", err)
	}
	return &controlplane.Error{Code: decision.Storage002, Message: "The file is not accepted: it cannot be converted.", Cause: fmt.Errorf("%w: %w: %s", ErrFile, err, said)}
}

// tooLarge says that a result passed its bound, which the kernel holds.
func tooLarge() error {
	return controlplane.Errorf(decision.Storage001, "The result is larger than is allowed.")
}

// tail keeps the last bytes that are written to it.
type tail struct{ bytes.Buffer }

// Write keeps p, and forgets what came long before.
func (t *tail) Write(p []byte) (int, error) {
	n, err := t.Buffer.Write(p)
	if over := t.Len() - maxSaid; over > 0 {
		t.Next(over)
	}
	return n, err
}
