// Package lockfile keeps two runs of the local stack out of each other's way.
//
// A lock belongs to an open file, so the kernel releases it when the process
// dies: there is no stale lock to clean up. The file itself stays.
package lockfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// HeldError says that another process holds the lock.
type HeldError struct {
	Name string // the lock's file
	PID  int    // its holder; 0 if unknown
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is held by the running process %d", e.Name, e.PID)
}

// Lock is a held lock.
type Lock struct{ file *os.File }

// TryTake takes the lock of the file name, created if missing. Returns a
// *HeldError at once if another process, or another Lock of this one, has it.
func TryTake(name string) (*Lock, error) { return take(name, syscall.LOCK_NB) }

// Take is TryTake, but waits for the present holder. waiting, if not nil, is
// called once before a wait.
func Take(name string, waiting func(*HeldError)) (*Lock, error) {
	l, err := TryTake(name)
	held := new(HeldError)
	if !errors.As(err, &held) {
		return l, err
	}
	if waiting != nil {
		waiting(held)
	}
	return take(name, 0)
}

func take(name string, flags int) (*Lock, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|flags)
	if err == nil {
		err = sign(f)
	} else if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &HeldError{Name: name, PID: holder(f)}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &Lock{f}, nil
}

// sign writes this process's id into the file, for HeldError.
func sign(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := fmt.Fprintf(f, "%d\n", os.Getpid())
	return err
}

func holder(f *os.File) int {
	text, _ := io.ReadAll(io.LimitReader(f, 32))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// Release gives the lock up. Releasing twice is harmless. Closing the file alone
// would leave the lock with a child that has been forked and has not begun its
// program yet.
func (l *Lock) Release() {
	if c, err := l.file.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _ = syscall.Flock(int(fd), syscall.LOCK_UN) })
	}
	_ = l.file.Close()
}
