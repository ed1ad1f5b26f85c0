// Package child runs processes that never outlive the one that started them.
//
// Envoy, Postgres and the parts of a local stack are children of one
// supervisor. If that is killed without a chance to clean up, the kernel sends
// each child a signal (PR_SET_PDEATHSIG). The kernel ties that signal to the
// thread that forked, not to the process, so every child gets a thread of its
// own which lives exactly as long as the child. Linux only.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// ioGrace bounds how long a finished child's output is still read when a
// grandchild keeps the pipe open.
const ioGrace = 2 * time.Second

// Process is a running or finished child. Its methods may be called from any
// goroutine.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts cmd in a process group of its own, so that a Ctrl-C at the
// terminal reaches only this process, which then stops its children in order.
// The child receives the signal onDeath when this process dies. The caller must
// not use cmd afterwards. Returns the error of exec unchanged.
func Start(cmd *exec.Cmd, onDeath syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = onDeath
	cmd.WaitDelay = ioGrace
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run holds the thread that forks until the child has ended.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// PID is the process id, which is the id of the process group as well.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and its output has been read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the end and returns nil after exit status 0, else the reason,
// an *exec.ExitError as a rule.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// ExitCode waits for the end and returns the status as a shell would: 128 plus
// the signal's number for a child that a signal ended.
func (p *Process) ExitCode() int {
	<-p.done
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends sig to the child alone. A child that has ended is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	return ignoreGone(p.cmd.Process.Signal(sig))
}

// SignalGroup sends sig to the child and everything it started in its group.
func (p *Process) SignalGroup(sig syscall.Signal) error {
	return ignoreGone(syscall.Kill(-p.PID(), sig))
}

// Stop asks the child to end with sig, waits up to grace, then kills its whole
// group. It returns when the child has ended: nil if it went by itself within
// grace, else an error that says it had to be killed.
func (p *Process) Stop(sig syscall.Signal, grace time.Duration) error {
	if err := p.Signal(sig); err != nil {
		return fmt.Errorf("signal process %d: %w", p.PID(), err)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.SignalGroup(syscall.SIGKILL) // what it may have left behind
	case <-timer.C:
	}
	if err := p.SignalGroup(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill process group %d: %w", p.PID(), err)
	}
	<-p.done
	return fmt.Errorf("process %d did not end within %s after %s and was killed", p.PID(), grace, sig)
}

// ignoreGone turns "no such process" into nil.
func ignoreGone(err error) error {
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
