// Package memlimit finds how much memory this process may take, and has Go's garbage
// collector work harder before the process is ended for taking more.
package memlimit

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// Unlimited is the limit of a process that has none.
const Unlimited = math.MaxInt64

// Variable is the Go runtime's own. Who sets it is left alone.
const Variable = "GOMEMLIMIT"

// Apply sets the soft limit of the garbage collector to nine tenths of what the
// container, or any control group around it, may take, and leaves a tenth for
// stacks, other files' pages and the collector's delay. It returns the container's
// limit in bytes: Unlimited if there is none, in which case nothing is set, and
// nothing is where set is true: GOMEMLIMIT says what the limit is then.
func Apply(set bool) int64 {
	limit := Container(os.DirFS("/"))
	if !set && limit != Unlimited {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
	return limit
}

// Container reads the limit of this process's control groups, of version 2 or 1,
// below root, which is the root of the file system. The least of the group's own and
// of those around it counts. What cannot be read limits nothing.
func Container(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return Unlimited
	}
	least := int64(Unlimited)
	for line := range strings.Lines(string(groups)) {
		field := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(field) < 3 {
			continue
		}
		switch {
		case field[0] == "0" && field[1] == "":
			least = min(least, lowest(root, "sys/fs/cgroup", field[2], "memory.max"))
		case strings.Contains(","+field[1]+",", ",memory,"):
			least = min(least, lowest(root, "sys/fs/cgroup/memory", field[2], "memory.limit_in_bytes"))
		}
	}
	return least
}

// lowest is the least number in the files of a name in the folder of group, below
// mount, and in those above it up to mount. In a container the path may be the
// host's, of which only mount is there.
func lowest(root fs.FS, mount, group, name string) int64 {
	least := int64(Unlimited)
	for at := path.Clean("/" + group); ; at = path.Dir(at) {
		text, err := fs.ReadFile(root, path.Join(mount, at, name))
		if err == nil {
			n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is none
			if err == nil && n > 0 && n < 1<<62 {                               // version 1 writes a number near the greatest for none
				least = min(least, n)
			}
		}
		if at == "/" {
			return least
		}
	}
}
