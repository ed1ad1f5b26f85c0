package pgserver

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// takeLock locks the file name for this process's life or until it is closed.
// The kernel releases it when the process dies, so a stale lock cannot exist.
func takeLock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		owner, _ := io.ReadAll(io.LimitReader(f, 32))
		_ = f.Close()
		return nil, fmt.Errorf("the data of %s is in use by the running process %s: stop that first", strings.TrimSuffix(name, ".lock"), owner)
	}
	if err := f.Truncate(0); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(f, "%d", os.Getpid())
	return f, err
}
