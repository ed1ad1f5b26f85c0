package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopLeftover ends a server that an earlier run left on data, and removes a
// pid file that nobody stands behind: after a kill -9 its number may belong to
// any other process, and postgres would then refuse to start.
func stopLeftover(ctx context.Context, data string) error {
	name := filepath.Join(data, "postmaster.pid")
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pid := pidOf(string(text))
	if !serves(pid, data) {
		return os.Remove(name)
	}
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the PostgreSQL (process %d) that an earlier run left: %w", pid, err)
	}
	return awaitEnd(ctx, pid, data)
}

// awaitEnd waits until process pid no longer serves data. It is not our child,
// so there is nothing to wait on but the process table.
func awaitEnd(ctx context.Context, pid int, data string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for serves(pid, data) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the PostgreSQL (process %d) that an earlier run left does not stop: kill it", pid)
		}
	}
	return nil
}

// pidOf reads the first line of a postmaster.pid; 0 if it is no process id.
func pidOf(text string) int {
	first, _, _ := strings.Cut(text, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 {
		return 0
	}
	return pid
}

// serves reports whether pid is a live postmaster on data: postgres makes its
// data folder its working directory.
func serves(pid int, data string) bool {
	if pid == 0 {
		return false
	}
	cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	if err != nil {
		return false
	}
	real, err := filepath.EvalSymlinks(data)
	return err == nil && cwd == real
}
