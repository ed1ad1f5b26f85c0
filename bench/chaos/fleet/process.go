package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"sluice.dev/sluice/platform/process/child"
)

// restartPause is how long a process stays dead, as under an init system.
const restartPause = 500 * time.Millisecond

// process is one process of the platform. It is started again when it dies.
type process struct {
	name    string
	command func() *exec.Cmd
	log     *os.File

	mu      sync.Mutex
	running *child.Process
	stopped bool
	done    chan struct{} // closed when nothing starts it any more
	starts  int
}

// start starts it and keeps it alive.
func (p *process) start() error {
	p.done = make(chan struct{})
	if err := p.spawn(); err != nil {
		close(p.done)
		return err
	}
	go p.keep()
	return nil
}

func (p *process) spawn() error {
	cmd := p.command()
	cmd.Stdout, cmd.Stderr = p.log, p.log
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	c, err := child.Start(cmd, syscall.SIGTERM)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.running, p.starts = c, p.starts+1
	return nil
}

func (p *process) keep() {
	defer close(p.done)
	for {
		<-p.current().Done()
		time.Sleep(restartPause)
		p.mu.Lock()
		stopped := p.stopped
		p.mu.Unlock()
		if stopped || p.spawn() != nil {
			return
		}
	}
}

func (p *process) current() *child.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// signal sends a signal to the process alone.
func (p *process) signal(sig syscall.Signal) error { return p.current().Signal(sig) }

// stop ends it for good. A process that had to be killed is an error: it did not
// end in order.
func (p *process) stop() error {
	p.mu.Lock()
	p.stopped = true
	c := p.running
	p.mu.Unlock()
	if c == nil {
		return nil
	}
	_ = c.Signal(syscall.SIGCONT)
	if err := c.Stop(syscall.SIGTERM, 30*time.Second); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	<-p.done
	return nil
}
