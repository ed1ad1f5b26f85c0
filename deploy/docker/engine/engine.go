// Package engine finds a docker engine, and starts one where that is possible.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// Config says what there is.
type Config struct {
	// Look finds a program; exec.LookPath outside of tests.
	Look func(name string) (string, error)
	// Answers returns nil when an engine answers.
	Answers func(ctx context.Context) error
	// Start starts the daemon at a path; it goes on when we end.
	Start func(path string) error
	// Root says whether this process may start a daemon.
	Root bool
	// Patience is how long a daemon may take to answer. 0: 30 s.
	Patience time.Duration
}

// errNone tells what to do where there is no engine.
var errNone = errors.New("there is no docker engine: install one (on Debian: apt-get install docker.io iptables docker-compose) and start it, " +
	"or run this as root, which starts dockerd by itself; see docs/docker.md")

// Ensure returns when an engine answers. It starts dockerd if nothing answers, it
// is installed, and we are root. The error says what to do.
func Ensure(ctx context.Context, c Config) error {
	if _, err := c.Look("docker"); err != nil {
		return errNone
	}
	cause := c.Answers(ctx)
	if cause == nil {
		return nil
	}
	daemon, err := c.Look("dockerd")
	if err != nil || !c.Root {
		return fmt.Errorf("%w (%w)", errNone, cause)
	}
	if err := c.Start(daemon); err != nil {
		return fmt.Errorf("start %s: %w", daemon, err)
	}
	if c.Patience == 0 {
		c.Patience = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if cause = c.Answers(ctx); cause == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s was started and does not answer: %w", daemon, cause)
		}
	}
}

// Local is the Config of this machine. log receives what the daemon says.
func Local(root bool, log io.Writer) Config {
	return Config{Look: exec.LookPath, Root: root, Answers: answers, Start: func(path string) error {
		cmd := exec.Command(path)
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it goes on when we end
		return cmd.Start()
	}}
}

func answers(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}").CombinedOutput()
	if err != nil {
		return fmt.Errorf("docker version: %w: %s", err, out)
	}
	return nil
}
