package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"sluice.dev/sluice/platform/process/child"
)

// restartPause is how long a process stays dead, as under an init system.
const restartPause = 500 * time.Millisecond

// process is one process of the platform. It is started again when it dies.
type process struct {
	name string
	argv []string
	env  []string
	log  *os.File

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
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, p.log, p.log
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

// kin returns the children of a process.
func kin(pid int) []int {
	var all []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			if id, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
				all = append(all, id)
			}
		}
	}
	return all
}
