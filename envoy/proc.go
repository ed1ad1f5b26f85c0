package envoy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// countWaits counts how often a worker thread of Envoy has waited for something, which
// is for events as a rule: the kernel counts its voluntary context switches.
// Returns false if that cannot be told.
func countWaits(pid int, worker string) (uint64, bool) {
	task, err := threadDir(pid, worker)
	if err != nil {
		return 0, false
	}
	status, err := os.ReadFile(filepath.Join(task, "status"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// lowerPriority gives a worker thread the lowest priority, not none: it needs some
// CPU to end when it is killed.
func lowerPriority(pid int, worker string) error {
	task, err := threadDir(pid, worker)
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(filepath.Base(task))
	if err != nil {
		return err
	}
	return unix.Setpriority(unix.PRIO_PROCESS, id, 19)
}

// threadDir is the folder of a worker thread below /proc.
func threadDir(pid int, worker string) (string, error) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", pid)) // the pattern is well formed
	for _, task := range tasks {
		if comm, err := os.ReadFile(filepath.Join(task, "comm")); err == nil && strings.TrimSpace(string(comm)) == "wrk:"+worker {
			return task, nil
		}
	}
	return "", errors.New("process " + strconv.Itoa(pid) + " has no thread of " + worker)
}
