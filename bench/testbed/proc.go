package testbed

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
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
