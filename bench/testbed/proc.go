package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pin puts every thread of a process on one core.
func pin(pid, core int) error {
	var set unix.CPUSet
	set.Set(core)
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, t := range tasks {
		tid, _ := strconv.Atoi(filepath.Base(t))
		if e := unix.SchedSetaffinity(tid, &set); e != nil && !errors.Is(e, unix.ESRCH) {
			err = errors.Join(err, fmt.Errorf("pin %d to core %d: %w", tid, core, e))
		}
	}
	return err
}

// cpuTime is what a process has used so far, to the nanosecond: its CPU clock.
func cpuTime(pid int) (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil {
		return 0, fmt.Errorf("CPU time of %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// RSS is how many bytes of memory a process holds.
func RSS(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, resident int64
	_, err = fmt.Sscan(string(b), &size, &resident)
	return resident * int64(os.Getpagesize()), err
}

// childNamed finds a process below pid, at any depth, whose program has a name that begins so.
func childNamed(pid int, name string) (int, error) {
	parents := map[int]int{}
	names := map[int]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, d := range dirs {
		b, err := os.ReadFile(d)
		if err != nil {
			continue
		}
		id, _ := strconv.Atoi(strings.Split(d, "/")[2])
		head, rest, _ := strings.Cut(string(b), ") ")
		_, names[id], _ = strings.Cut(head, "(")
		if f := strings.Fields(rest); len(f) > 1 {
			parents[id], _ = strconv.Atoi(f[1])
		}
	}
	for id, n := range names {
		for p := id; strings.HasPrefix(n, name) && p > 1; p = parents[p] {
			if p == pid {
				return id, nil
			}
		}
	}
	return 0, fmt.Errorf("process %d has no child %s", pid, name)
}
