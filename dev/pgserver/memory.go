package pgserver

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/platform/process/memlimit"
)

// memoryFolder is the folder of Linux whose files are in memory.
const memoryFolder = "/dev/shm"

// leastMemory is what must be free of memory before the files of a server may be
// there: tests need theirs too. Databases of tests have 12 MB each, and are dropped.
const leastMemory = 8 << 30

// walInMemory bounds the write-ahead log of a server whose files are in memory.
const walInMemory = "max_wal_size=512MB"

// temporary is the parent of the folder of an ephemeral server.
func temporary(memory bool) string {
	if memory && freeMemory(memoryFolder) >= leastMemory {
		removeAbandoned(memoryFolder, time.Now().Add(-time.Hour))
		return memoryFolder
	}
	return os.TempDir()
}

// freeMemory is how many bytes files in dir, a file system in memory, may take:
// the least of what is free there, on the machine, and of the container's limit. 0:
// it cannot be told.
func freeMemory(dir string) int64 {
	var fs syscall.Statfs_t
	const tmpfs = 0x01021994 // from linux/magic.h
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Type != tmpfs {
		return 0
	}
	text, _ := os.ReadFile("/proc/meminfo")
	free := int64(min(fs.Bavail*uint64(fs.Bsize), math.MaxInt64))
	return min(free, available(string(text)), memlimit.Container(os.DirFS("/")))
}

// available reads the line MemAvailable of /proc/meminfo, in bytes; 0: there is none.
func available(meminfo string) int64 {
	_, rest, _ := strings.Cut("\n"+meminfo, "\nMemAvailable:")
	line, _, _ := strings.Cut(rest, "\n")
	kilobytes, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 10, 64)
	return kilobytes << 10
}

// removeAbandoned removes what ephemeral servers have left in dir that were killed
// before a time with the process that had started them: it would take memory until
// the machine ends.
func removeAbandoned(dir string, before time.Time) {
	left, _ := filepath.Glob(filepath.Join(dir, ephemeralName+"*"))
	for _, base := range left {
		data := filepath.Join(base, "data")
		info, err := os.Stat(base)
		text, _ := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		if err == nil && info.ModTime().Before(before) && !serves(pidOf(string(text)), data) {
			_ = os.RemoveAll(base) // it may be another user's
		}
	}
}
