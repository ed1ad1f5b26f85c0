package bindcheck

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stateListen is TCP_LISTEN as /proc/net/tcp writes it.
const stateListen = "0A"

// listener returns the process that listens on a TCP port, and its name; 0 if
// there is none or it belongs to a user whose processes are hidden from us.
func listener(proc, port string) (pid int, name string) {
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0, ""
	}
	inodes := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		if text, err := os.ReadFile(filepath.Join(proc, "net", table)); err == nil {
			listeningInodes(string(text), n, inodes)
		}
	}
	if len(inodes) == 0 {
		return 0, ""
	}
	links, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "fd", "*"))
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && inodes[target] {
			dir := filepath.Dir(filepath.Dir(link))
			comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
			pid, _ := strconv.Atoi(filepath.Base(dir))
			return pid, strings.TrimSpace(string(comm))
		}
	}
	return 0, ""
}

// listeningInodes adds the sockets of a /proc/net/tcp table that listen on port,
// as the links below /proc/PID/fd name them.
func listeningInodes(table string, port int, into map[string]bool) {
	suffix := fmt.Sprintf(":%04X", port)
	for _, line := range strings.Split(table, "\n") {
		f := strings.Fields(line) // 1: local address, 3: state, 9: inode
		if len(f) > 9 && strings.HasSuffix(f[1], suffix) && f[3] == stateListen {
			into["socket:["+f[9]+"]"] = true
		}
	}
}
