// Package harness starts processes, waits for them, looks into them and stops them,
// for end-to-end tests and benchmarks. It imports no package of the product.
package harness

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Patience bounds every wait for something that must happen. It is long, because a
// machine that does other things too is slow, and costs nothing where all is well.
const Patience = 2 * time.Minute

// Until calls f until it returns nil, and returns its last error once Patience is
// over. It is for what happens in another process, which gives no signal. It asks
// less often the longer it has waited, and the longer it takes to ask, to leave the
// cores to those it waits for.
func Until(f func() error) error {
	const least, most, mostOfSlow = 2 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond
	for began := time.Now(); ; {
		asked := time.Now()
		err := f()
		waited, took := time.Since(began), time.Since(asked)
		if err == nil || waited > Patience {
			return err
		}
		time.Sleep(max(min(max(waited/50, least), most), min(took, mostOfSlow)))
	}
}

// Process is one that was started here. It is asked to end when its parent dies.
type Process struct {
	cmd  *exec.Cmd
	out  *os.File // has no name any more; nil: the output goes elsewhere
	done chan struct{}
	err  error
}

// Start starts cmd, and keeps its output unless cmd says where it goes. If it keeps
// it, a process has ended when all that it started and that could still write have:
// an Envoy too, whose ports are then free. The caller must not use cmd afterwards.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	if cmd.Stdout == nil && cmd.Stderr == nil {
		var err error
		if p.out, err = os.CreateTemp("", "sluice-output-"); err != nil {
			return nil, err
		}
		if err := os.Remove(p.out.Name()); err != nil {
			return nil, err
		}
		through := struct{ io.Writer }{p.out} // a pipe, which closes when the last of its writers has ended
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = through, through, Patience/4
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID is its process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when it has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the end and returns nil after exit status 0.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Signal sends sig to the process alone. It is an error if it has ended.
func (p *Process) Signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// Stop ends it as Ctrl-C does. The error says that it did not end in order, and
// shows the end of what it wrote.
func (p *Process) Stop() error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s: %w\n%s", p, err, p.Tail())
	}
	select {
	case <-p.done:
	case <-time.After(Patience):
		p.Kill()
		return fmt.Errorf("%s does not stop\n%s", p, p.Tail())
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w\n%s", p, p.err, p.Tail())
	}
	return nil
}

// Kill ends it as a crash of its machine does, if it runs.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// Writes waits until the process has written a line that begins with prefix.
func (p *Process) Writes(prefix string) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(Patience); ; {
		if strings.Contains("\n"+p.Output(), "\n"+prefix) {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.done:
			return fmt.Errorf("%s ended: %w\n%s", p, p.err, p.Tail())
		case <-late:
			return fmt.Errorf("%s does not write %q within %v\n%s", p, prefix, Patience, p.Tail())
		}
	}
}

// Output is all that it has written, if that is kept.
func (p *Process) Output() string {
	if p.out == nil {
		return ""
	}
	text, err := io.ReadAll(io.NewSectionReader(p.out, 0, math.MaxInt64))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Tail is the end of what it has written.
func (p *Process) Tail() string {
	s := p.Output()
	return s[max(0, len(s)-4000):]
}

// String is the command, without its folder.
func (p *Process) String() string {
	return strings.Join(append([]string{p.cmd.Path[strings.LastIndex(p.cmd.Path, "/")+1:]}, p.cmd.Args[1:]...), " ")
}
