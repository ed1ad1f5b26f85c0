// Package clock moves the clock of a running process, whatever it is written in:
// programs in Go, which ask the kernel without libc, static ones and Envoy alike.
//
// They all ask by the functions that the kernel maps into every process (the
// vDSO). Shift has those make the true system call and add a number of seconds,
// by writing to the process's memory, as a debugger would. The wall clock moves
// and the monotonic one stays, as when somebody sets a machine's clock. What the
// process forks has the moved clock too; what it executes has the true one.
// amd64 and Linux only.
package clock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Shift moves the clock of process pid to so many seconds from the true time; 0
// sets it right again. The process stands still meanwhile, for about a
// millisecond; if it was stopped before, it stays so. A process that has ended is
// no error. Callers must not stop or continue the same process at the same time.
func Shift(pid int, seconds int64) error {
	err := shift(pid, seconds)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("move the clock of process %d: %w", pid, err)
	}
	return nil
}

func shift(pid int, seconds int64) error {
	base, size, err := find(pid)
	if err != nil {
		return err
	}
	mem, err := os.OpenFile(proc(pid, "mem"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	image := make([]byte, size)
	if _, err := mem.ReadAt(image, int64(base)); err != nil {
		return gone(err)
	}
	patches, err := plan(image, seconds)
	if err != nil || len(patches) == 0 {
		return err
	}
	if len(patches) == 1 {
		size = 0 // the slot alone may be written wherever the threads are
	}
	resume, err := still(pid, base, base+size)
	if err != nil {
		return err
	}
	defer resume()
	for _, p := range patches {
		if _, err := mem.WriteAt(p.bytes, int64(base)+int64(p.at)); err != nil {
			return gone(err)
		}
	}
	return nil
}

// gone is an error of memory that is no more, because its process is not.
func gone(err error) error {
	if errors.Is(err, syscall.EIO) || errors.Is(err, io.EOF) {
		return errors.Join(err, syscall.ESRCH)
	}
	return err
}

func proc(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// find says where the kernel's functions are in a process.
func find(pid int) (base, size uint64, err error) {
	maps, err := os.ReadFile(proc(pid, "maps"))
	if err != nil {
		return 0, 0, err
	}
	for line := range bytes.Lines(maps) {
		if f := bytes.Fields(line); len(f) == 6 && string(f[5]) == "[vdso]" {
			from, to, _ := strings.Cut(string(f[0]), "-")
			a, err := strconv.ParseUint(from, 16, 64)
			if err != nil {
				return 0, 0, err
			}
			b, err := strconv.ParseUint(to, 16, 64)
			return a, b - a, err
		}
	}
	if len(maps) == 0 { // it has ended and is not waited for yet
		return 0, 0, syscall.ESRCH
	}
	return 0, 0, errors.New("the kernel maps no functions into it")
}

// Bounds of the wait for a process to stand still.
const (
	patience = 5 * time.Second
	glance   = time.Millisecond
)

// still stops a process where none of its threads is between from and to, and
// returns what lets it go on, if it went before.
func still(pid int, from, to uint64) (resume func(), err error) {
	resume = func() { _ = syscall.Kill(pid, syscall.SIGCONT) } // it may have ended
	if stopped(pid) {
		resume = func() {}
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(glance) {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return nil, err
		}
		pcs, all, err := counters(pid)
		if err != nil {
			resume()
			return nil, err
		}
		inside := false
		for _, pc := range pcs {
			inside = inside || pc >= from && pc < to
		}
		if all && !inside {
			return resume, nil
		}
		if all {
			resume()
		}
	}
	resume()
	return nil, errors.New("it does not stand still")
}

// stopped says whether a process has been stopped by a signal.
func stopped(pid int) bool {
	stat, err := os.ReadFile(proc(pid, "stat"))
	_, rest, found := strings.Cut(string(stat), ") ")
	return err == nil && found && strings.HasPrefix(rest, "T")
}

// counters are the program counters of a process's threads; all: of every one.
func counters(pid int) (pcs []uint64, all bool, err error) {
	threads, err := os.ReadDir(proc(pid, "task"))
	if err != nil {
		return nil, false, err
	}
	all = len(threads) > 0
	for _, t := range threads {
		text, err := os.ReadFile(proc(pid, filepath.Join("task", t.Name(), "syscall")))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return nil, false, err
		}
		f := strings.Fields(string(text))
		if len(f) < 3 { // running
			all = false
			continue
		}
		pc, err := strconv.ParseUint(f[len(f)-1], 0, 64)
		if err != nil {
			return nil, false, err
		}
		pcs = append(pcs, pc)
	}
	return pcs, all, nil
}

func little(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }
