//go:build race

package sandbox

import (
	"bytes"
	"os"
	"strconv"
)

// room is what a confined process may take for memory bytes. The race detector has
// mapped much before it begins, and maps several bytes more for each.
func room(memory uint64) uint64 {
	statm, _ := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(append(statm, " 0 0 0 0 0 0"...))
	pages, _ := strconv.ParseUint(string(fields[5]), 10, 64)
	return pages*uint64(os.Getpagesize()) + 6*memory
}
