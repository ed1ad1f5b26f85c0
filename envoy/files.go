package envoy

import (
	"fmt"
	"syscall"
)

// raiseOpenFiles raises this process's limit of open files as far as it may go,
// and returns it. Go gives children the limit from before its own silent raise;
// only after an explicit one do they inherit it, and Envoy needs two files for
// each connection that it proxies.
func raiseOpenFiles() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("raise the limit of open files to %d: %w", limit.Max, err)
	}
	return int(min(limit.Cur, 1<<30)), nil
}
