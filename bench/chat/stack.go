package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"sluice.dev/sluice/bench/load"
)

// bed is a whole local stack in front of the model.
type bed struct {
	dir      string
	cmd      *exec.Cmd
	out      buffer
	subjects []*subject
}

// settings are the stack's addresses, each on a free port.
var settings = []string{"GATEWAY_ADDR", "RUNTIME_ADDR", "ADMIN_ADDR", "XDS_ADDR", "API_LISTEN", "RUNTIME_LISTEN", "MEDIA_LISTEN", "WORKER_LISTEN", "ENVOY_ADMIN_ADDR"}

// startStack runs `sluice up` in front of a model, in a folder of its own.
func startStack(model string) (*bed, error) {
	for _, name := range []string{"SLUICE_BIN", "SLUICE_ENVOY", "SLUICE_WASM_DIR", "SLUICE_TEST_DATABASE_URL"} {
		if os.Getenv(name) == "" {
			return nil, fmt.Errorf("%s is not set: run `make bench`", name)
		}
	}
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return nil, err
	}
	b := &bed{dir: dir}
	if err := b.up(model); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// up starts the stack, waits until it is ready, and finds its processes.
func (b *bed) up(model string) error {
	addrs, err := load.FreeAddrs(len(settings))
	if err != nil {
		return err
	}
	b.cmd = exec.Command(os.Getenv("SLUICE_BIN"), "up")
	b.cmd.Env = append(os.Environ(), "SLUICE_STATE_DIR="+filepath.Join(b.dir, "state"), "SLUICE_MODEL_UPSTREAM="+model,
		"SLUICE_DATABASE_URL="+os.Getenv("SLUICE_TEST_DATABASE_URL"))
	for i, name := range settings {
		b.cmd.Env = append(b.cmd.Env, "SLUICE_"+name+"="+addrs[i])
	}
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.out
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := b.cmd.Start(); err != nil {
		return err
	}
	if err := load.Until(func() error {
		if !strings.Contains(b.out.String(), "\nready") {
			return errors.New("the stack is not ready: " + b.out.String())
		}
		return nil
	}); err != nil {
		return err
	}
	vars, err := os.ReadFile(filepath.Join(b.dir, "state", "dev.env"))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(vars), "\nSLUICE_API_KEY=")
	key, _, _ := strings.Cut(rest, "\n")
	key = strings.Trim(key, "'")
	runtime, err1 := below(b.cmd.Process.Pid, "runtime")
	envoy, err2 := below(b.cmd.Process.Pid, "--config-path")
	if err2 != nil {
		envoy, err2 = below(b.cmd.Process.Pid, "-c")
	}
	b.subjects = []*subject{
		{name: "runtime", base: "http://" + addrs[5] + "/v1", key: key, model: "m", pids: []int{runtime}},
		{name: "edge and runtime", base: "http://" + addrs[1] + "/v1", key: key, model: "m", pids: []int{runtime, envoy}},
	}
	return errors.Join(err1, err2)
}

// stop ends the stack as Ctrl-C would, and removes its folder.
func (b *bed) stop() {
	if b.cmd != nil && b.cmd.Process != nil {
		_ = b.cmd.Process.Signal(syscall.SIGTERM)
		_ = b.cmd.Wait()
	}
	_ = os.RemoveAll(b.dir)
}

// rss is the memory of a subject's processes, in bytes.
func (s *subject) rss() (sum int64) {
	for _, pid := range s.pids {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if f := bytes.Fields(b); len(f) > 1 {
			pages, _ := strconv.ParseInt(string(f[1]), 10, 64)
			sum += pages * int64(os.Getpagesize())
		}
	}
	return sum
}

// below finds a process under pid, at any depth, that has an argument.
func below(pid int, argument string) (int, error) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		b, _ := os.ReadFile(filepath.Join(d, "cmdline"))
		if !bytes.Contains(b, []byte("\x00"+argument+"\x00")) {
			continue
		}
		id, _ := strconv.Atoi(filepath.Base(d))
		for p := id; p > 1; p = parent(p) {
			if p == pid {
				return id, nil
			}
		}
	}
	return 0, fmt.Errorf("the stack has no process with %s", argument)
}

// parent is a process's parent, 0 if there is no such process.
func parent(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := bytes.Cut(b, []byte(") "))
	if f := bytes.Fields(rest); len(f) > 1 {
		n, _ := strconv.Atoi(string(f[1]))
		return n
	}
	return 0
}

// buffer collects what the stack writes.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends p.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is all that was written so far.
func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
