package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// command is one program to run.
type command struct {
	argv []string
	dir  string   // empty: the present one
	env  []string // added to this process's own
}

// run runs c and returns its standard output. A failure is one line: the
// program and the last line that it wrote.
func run(ctx context.Context, c command) (string, error) {
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var stdout, both strings.Builder
	cmd.Stdout = tee{&stdout, &both}
	cmd.Stderr = &both
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", describe(filepath.Base(c.argv[0]), err, both.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}

// describe makes one line of a failure.
func describe(program string, err error, output string) error {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return fmt.Errorf("%s: %s", program, last)
	}
	return fmt.Errorf("%s: %w", program, err)
}

// tee writes to both builders.
type tee [2]*strings.Builder

func (t tee) Write(p []byte) (int, error) {
	t[0].Write(p)
	return t[1].Write(p)
}

// lookPath finds a program in the folders of path; "" if it is not there.
func lookPath(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if found, err := exec.LookPath(file); err == nil && filepath.IsAbs(found) {
			return found
		}
	}
	return ""
}

// exists reports whether there is a file or folder of that name.
func exists(name string) bool {
	_, err := os.Stat(name)
	return !errors.Is(err, os.ErrNotExist)
}
