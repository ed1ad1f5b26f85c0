// Package freeport finds ports for processes that are started later.
//
// A port that was found free may be taken before its process listens: by a
// connection, to which the system gives any port of its own range, or by
// somebody else who looks for one. So ports lie below that range, and whoever
// asks here holds a lock for each, until the end of the process.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Linux gives connections 32768 and above.
const first, end = 12000, 32000

var errNone = errors.New("no free port on 127.0.0.1")

// claims are the locks of this process. They go with it.
var claims struct {
	sync.Mutex
	held []*os.File
}

// Addrs returns n addresses, 127.0.0.1 each with another port, that nobody
// listens on and that nobody else gets from here while this process lives.
func Addrs(n int) ([]string, error) {
	rows, err := within(n, 1, 0, first, end)
	return slices.Concat(rows...), err
}

// Rows returns n rows of addresses as Addrs does. The ports of a row are step apart:
// for a process that derives further ports from the one that it is told.
func Rows(n, columns, step int) ([][]string, error) { return within(n, columns, step, first, end) }

func within(n, columns, step, first, end int) (rows [][]string, err error) {
	for tries := 0; len(rows) < n; tries++ {
		if tries == 100*n+1000 {
			return nil, errNone
		}
		if row, ok := claimRow(first+rand.IntN(end-first), columns, step); ok {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// claimRow claims every port of a row. What it has claimed of one that is not free
// throughout is lost to this process, which does no harm.
func claimRow(port, columns, step int) (row []string, ok bool) {
	for i := range columns {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port+i*step))
		if !claim(addr) || !free(addr) {
			return nil, false
		}
		row = append(row, addr)
	}
	return row, true
}

// free reports whether nobody listens. It asks, and does not listen itself: a
// child that is forked meanwhile would keep that up until its program begins.
func free(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// claim takes the lock of addr, unless somebody has it. Where locks cannot be
// had, as on a read-only disk, nobody has.
func claim(addr string) bool {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("sluice-ports-%d", os.Getuid()))
	_ = os.Mkdir(dir, 0o700)
	_, port, _ := net.SplitHostPort(addr)
	lock, err := os.OpenFile(filepath.Join(dir, port), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return true
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = lock.Close()
		return false
	}
	claims.Lock()
	defer claims.Unlock()
	claims.held = append(claims.held, lock)
	return true
}
