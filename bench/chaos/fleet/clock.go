package fleet

import (
	"fmt"
	"os"
	"path/filepath"
)

// The clock that can jump is the database's. Programs in Go read the time from
// the kernel without libc, so nothing that is preloaded moves theirs, and Envoy
// does not start with libfaketime in it.

// FakeTime finds the library that moves a program's clock; "" if it is not installed.
func FakeTime() string {
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}

func (f *Fleet) clockFile() string { return filepath.Join(f.Dir, "clock") }

// clocked are the variables of a server whose clock can be moved.
func (f *Fleet) clocked() ([]string, error) {
	if f.Clock == "" {
		return nil, nil
	}
	return []string{"LD_PRELOAD=" + f.Clock, "FAKETIME_TIMESTAMP_FILE=" + f.clockFile(), "FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"}, f.setClock(0)
}

// setClock moves it by so many seconds from the true time, within a second.
func (f *Fleet) setClock(seconds int) error {
	next := f.clockFile() + ".new"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+d\n", seconds), 0o644); err != nil {
		return err
	}
	return os.Rename(next, f.clockFile())
}

// jump moves the clock until the returned function is called.
func (f *Fleet) jump(seconds int) (back func() error, err error) {
	return func() error { return f.setClock(0) }, f.setClock(seconds)
}
