// Package sandbox runs code that handles untrusted files in a confined process of its
// own, so that a file that takes such a program over has nothing: no
// network, no credentials (a clean environment, no open files, no look at other
// processes), no files but one folder, and bounds on memory, processor and output
// that the kernel holds.
//
// The program that uses it starts itself again: its main calls [Main] first, which
// does not return in a confined process. There it gives up what it can (rlimits,
// Landlock, seccomp) and becomes the program that was asked for, or calls one of its
// own functions. Where the kernel allows it, the process also has user, network, IPC
// and process namespaces of its own. [Check] tells what holds on this machine.
package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Job is what runs confined: a program or a function.
type Job struct {
	// Program is the path of a binary, Args what follows its name.
	Program string
	Args    []string
	// Function is the name of one that Main was given, in place of Program. It has no
	// files at all, not even Folder.
	Function string
	// Folder is the one that a program works in, and whose files it may read and
	// write. Required for a Program.
	Folder string
	// Read are more folders whose files a program may read, such as those of its models
	// and libraries.
	Read []string
	// Memory bounds what it takes for data, in bytes, FileSize each file that it
	// writes, CPU its time on processors. Required, but for FileSize, 0: no file.
	Memory, FileSize int64
	CPU              time.Duration
	// Live: it keeps up with something that goes on now, such as a stream. Others give way to
	// all that is not confined, so that strangers' files do not make requests late.
	Live   bool
	Stderr io.Writer // nil: dropped
	// Talk, if not nil, writes to its standard input and reads its standard output
	// while it runs.
	Talk func(io.Writer, io.Reader) error
}

// order is what the confined process is told, as its second argument.
type order struct {
	Program  string   `json:"program,omitempty"`
	Args     []string `json:"args,omitempty"`
	Function string   `json:"function,omitempty"`
	Folder   string   `json:"folder,omitempty"`
	Read     []string `json:"read,omitempty"`
	Memory   uint64   `json:"memory"`
	FileSize uint64   `json:"file_size"`
	CPU      uint64   `json:"cpu"` // seconds
	Landlock bool     `json:"landlock"`
	Seccomp  bool     `json:"seccomp"`
}

// word is the first argument of a confined process.
const word = "confined"

// namespaces are what a process gets of its own where the kernel allows it. No user
// is mapped in: whoever it is outside, it is nobody inside.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWPID

// ErrStart says that a confined process could not be started.
var ErrStart = errors.New("start a confined process")

// Failed reports whether err, of Run, says that the job was not run at all: that its
// process could not be started or confined, or that there is no such program.
func Failed(err error) bool {
	exit, ended := errors.AsType[*exec.ExitError](err)
	return errors.Is(err, ErrStart) || ended && exit.ExitCode() == failed
}

// errNoMain says that the program would start itself without being confined.
var errNoMain = errors.New("the program's main does not call sandbox.Main")

// Run runs j until it ends or ctx does, which kills it and all that it has started.
// The error of a job that failed is an *exec.ExitError, or that of Talk, which may
// have failed because of it.
func (j Job) Run(ctx context.Context) error {
	holds := Check()
	o := order{Program: j.Program, Args: j.Args, Function: j.Function, Folder: j.Folder, Read: j.Read,
		Memory: uint64(j.Memory), FileSize: uint64(j.FileSize), CPU: uint64(j.CPU.Seconds()) + 1,
		Landlock: holds.Landlock > 0, Seccomp: holds.Seccomp}
	if j.Live {
		return j.run(ctx, o, holds.Namespaces)
	}
	return giveWay(func() error { return j.run(ctx, o, holds.Namespaces) })
}

// behind is the niceness of what gives way: about a tenth of the share of a process of the
// usual niceness, 0, while both want the same processor.
const behind = 10

// giveWay calls f on a thread that is behind others, as are the processes that f starts.
// The thread ends with f: it may not come forward again.
func giveWay(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, behind)
		done <- f()
	}()
	return <-done
}

// run starts o, in namespaces of its own or not, and waits for its end.
func (j Job) run(ctx context.Context, o order, apart bool) error {
	if !called.Load() {
		return fmt.Errorf("%w: %w", ErrStart, errNoMain)
	}
	spec, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := keepFiles(); err != nil {
		return err
	}
	// The kernel ties Pdeathsig to the thread that forks, not to the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", word, string(spec))
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "GOMAXPROCS=2"}
	if o.Folder != "" {
		cmd.Dir = o.Folder
		cmd.Env = append(cmd.Env, "HOME="+o.Folder, "TMPDIR="+o.Folder)
	}
	cmd.Stderr = j.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if apart {
		cmd.SysProcAttr.Cloneflags = namespaces
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return j.attend(cmd)
}

// attend starts cmd and talks with it.
func (j Job) attend(cmd *exec.Cmd) error {
	if j.Talk == nil {
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("%w: %w", ErrStart, err)
		}
		return cmd.Wait()
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	said := j.Talk(in, out)
	if said != nil { // nobody listens any more
		_ = cmd.Cancel()
	}
	in.Close()
	if err := cmd.Wait(); err != nil && said == nil {
		return err
	}
	return said
}

// Holds is what this machine allows.
type Holds struct {
	Namespaces bool // of users, network, IPC and processes
	Landlock   int  // version of its interface; 0: the kernel has none
	Seccomp    bool
}

// Whole reports whether a confined process has neither network nor other files.
func (h Holds) Whole() bool { return h.Seccomp && h.Landlock > 0 }

// String is for the log.
func (h Holds) String() string {
	say := map[bool]string{true: "yes", false: "no"}
	return "namespaces " + say[h.Namespaces] + ", landlock " + strconv.Itoa(h.Landlock) + ", seccomp " + say[h.Seccomp]
}

// Check finds out, once, by confining a process that does nothing.
var Check = sync.OnceValue(func() (h Holds) {
	for _, apart := range []bool{true, false} {
		if try, err := check(apart); err == nil {
			try.Namespaces = apart
			return try
		}
	}
	return h
})

// check has a process report what it could do.
func check(apart bool) (h Holds, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	j := Job{Talk: func(_ io.Writer, out io.Reader) error { return json.NewDecoder(out).Decode(&h) }}
	return h, j.run(ctx, order{Function: report, Memory: 1 << 30, CPU: 10}, apart)
}
