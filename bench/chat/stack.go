package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"sluice.dev/sluice/bench/load"
)

// bed is a whole local stack in front of the model.
type bed struct {
	*load.Stack
	subjects []*subject
}

// startStack runs `sluice up` in front of a model, in a folder of its own.
func startStack(model string) (*bed, error) {
	stack, err := load.NewStack(map[string]string{"SLUICE_MODEL_UPSTREAM": model, "SLUICE_RUNTIME_STANDALONE": "1"})
	if err != nil {
		return nil, err
	}
	b := &bed{Stack: stack}
	if err := b.up(); err != nil {
		b.Stop()
		return nil, err
	}
	return b, nil
}

// up starts the stack, waits until it is ready, and finds its processes.
func (b *bed) up() error {
	if err := b.Up(context.Background()); err != nil {
		return err
	}
	key := b.Dev["SLUICE_API_KEY"]
	runtime, err1 := below(b.PID(), "runtime")
	envoy, err2 := below(b.PID(), "--config-path")
	if err2 != nil {
		envoy, err2 = below(b.PID(), "-c")
	}
	b.subjects = []*subject{
		{name: "runtime", base: "http://" + b.Env["SLUICE_RUNTIME_LISTEN"] + "/v1", key: key, model: "m", pids: []int{runtime}},
		{name: "edge and runtime", base: "http://" + b.Env["SLUICE_RUNTIME_ADDR"] + "/v1", key: key, model: "m", pids: []int{runtime, envoy}},
	}
	return errors.Join(err1, err2)
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
