package supervise

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"sluice.dev/sluice/platform/process/child"
)

// Command is a program to run as a part.
type Command struct {
	// Argv is the program and its arguments.
	Argv []string
	// Env is its whole environment. Nil: this process's own.
	Env []string
	// Dir is its working folder. Empty: this process's own.
	Dir string
	// StopGrace is the time between SIGTERM and SIGKILL. Zero: 10 s.
	StopGrace time.Duration
}

// Start starts the program, as Part.Start wants it. It dies with this process.
func (c Command) Start(_ context.Context, log io.Writer) (Running, error) {
	last := &lastLine{next: log}
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	cmd.Stdout, cmd.Stderr = last, last
	proc, err := child.Start(cmd, syscall.SIGTERM)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
	}
	return &program{proc: proc, last: last, grace: cmp.Or(c.StopGrace, 10*time.Second)}, nil
}

// program is a running Command.
type program struct {
	proc  *child.Process
	last  *lastLine
	grace time.Duration
}

func (p *program) Done() <-chan struct{} { return p.proc.Done() }

func (p *program) Stop() error { return p.proc.Stop(syscall.SIGTERM, p.grace) }

// Cause is the way it ended, and the last thing it said.
func (p *program) Cause() string {
	how := "exit status 0"
	if err := p.proc.Err(); err != nil {
		how = err.Error()
	}
	if said := p.last.text(); said != "" {
		return how + ": " + said
	}
	return how
}

// Step makes a part of a function that does its work and is done.
func Step(name string, do func(ctx context.Context) error) Part {
	return Part{Name: name, Start: func(ctx context.Context, _ io.Writer) (Running, error) {
		return nil, do(ctx)
	}}
}
