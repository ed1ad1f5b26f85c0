package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"sluice.dev/sluice/e2e/freeport"
)

// addresses are the variables of the addresses that a stack listens on.
var addresses = []string{"GATEWAY_ADDR", "RUNTIME_ADDR", "ADMIN_ADDR", "XDS_ADDR", "API_LISTEN", "RUNTIME_LISTEN", "MEDIA_LISTEN", "WORKER_LISTEN", "ENVOY_ADMIN_ADDR", "EDGE_METRICS_ADDR"}

// Stack is `sluice up` in a folder of its own, on free ports and the database of
// SLUICE_TEST_DATABASE_URL, without a media engine.
type Stack struct {
	Dir string            // removed by Stop
	Env map[string]string // what its processes are given; Up reads it
	Dev map[string]string // dev.env, once Up has returned
	cmd *exec.Cmd
}

// NewStack makes the folder and chooses the ports, and starts nothing. extra
// comes on top, and stands in for a port.
func NewStack(extra map[string]string) (*Stack, error) {
	for _, name := range []string{"SLUICE_BIN", "SLUICE_ENVOY", "SLUICE_WASM_DIR", "SLUICE_TEST_DATABASE_URL"} {
		if os.Getenv(name) == "" {
			return nil, fmt.Errorf("%s is not set: run `make bench`", name)
		}
	}
	addrs, err := freeport.Addrs(len(addresses))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return nil, err
	}
	s := &Stack{Dir: dir, Env: map[string]string{
		"SLUICE_STATE_DIR": filepath.Join(dir, "state"), "SLUICE_DATABASE_URL": os.Getenv("SLUICE_TEST_DATABASE_URL"), "SLUICE_MEDIA_ENGINE": "off",
	}}
	for i, name := range addresses {
		s.Env["SLUICE_"+name] = addrs[i]
	}
	maps.Copy(s.Env, extra)
	return s, nil
}

// Command is the product's binary with the stack's environment, and extra on top.
func (s *Stack) Command(ctx context.Context, extra map[string]string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Getenv("SLUICE_BIN"), args...)
	cmd.Env = os.Environ()
	for _, m := range []map[string]string{s.Env, extra} {
		for k, v := range m {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return cmd
}

// Up starts the stack and waits until it is ready. The error shows the last that
// the stack has said.
func (s *Stack) Up(ctx context.Context) error {
	log, err := os.Create(filepath.Join(s.Dir, "up.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = s.Command(ctx, nil, "up")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	err = Until(func() error {
		text, err := os.ReadFile(log.Name())
		if err == nil && !strings.Contains(string(text), "\nready in ") {
			err = errors.New("the stack is not ready: " + string(text[max(0, len(text)-500):]))
		}
		return err
	})
	if err == nil {
		s.Dev, err = s.Variables("dev.env")
	}
	return err
}

// PID is the process id of `sluice up`.
func (s *Stack) PID() int { return s.cmd.Process.Pid }

// Variables reads a file of variables in the stack's state folder.
func (s *Stack) Variables(name string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(s.Env["SLUICE_STATE_DIR"], name))
	if err != nil {
		return nil, err
	}
	vars := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			vars[k] = strings.Trim(v, "'")
		}
	}
	return vars, nil
}

// Stop ends the stack as Ctrl-C would, if it is up, and removes its folder.
func (s *Stack) Stop() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
	}
	_ = os.RemoveAll(s.Dir)
}
