package fleet

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// established is the state of a connection that is up, as the kernel writes it.
const established = "01"

// remotes reads a table of /proc/net: by the number of a connection's socket, the
// port of its other end. Loopback only, where all of the platform is.
func remotes(table []byte) map[string]int {
	all := map[string]int{}
	for line := range bytes.Lines(table) {
		f := strings.Fields(string(line))
		if len(f) < 10 || f[3] != established {
			continue
		}
		address, port, _ := strings.Cut(f[2], ":")
		raw, err := hex.DecodeString(port)
		if err != nil || len(raw) != 2 || !strings.HasSuffix(address, "0100007F") {
			continue
		}
		all[f[9]] = int(raw[0])<<8 | int(raw[1])
	}
	return all
}

// sockets are the numbers of the sockets that a process has.
func sockets(pid int) (numbers []string) {
	fds, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*")) // none, if it has ended
	for _, fd := range fds {
		to, err := os.Readlink(fd)
		if number, is := strings.CutPrefix(to, "socket:["); err == nil && is {
			numbers = append(numbers, strings.TrimSuffix(number, "]"))
		}
	}
	return numbers
}

// Bypasses names the connections that a process of the platform has to another
// part over no wire: nothing could break them. There are none if every connection
// has a wire.
func (f *Fleet) Bypasses() (found []string, err error) {
	ends := map[int]string{}
	for name, addr := range f.listeners() {
		_, port, _ := net.SplitHostPort(addr)
		n, err := strconv.Atoi(port)
		if err != nil {
			return nil, fmt.Errorf("the address of %s: %w", name, err)
		}
		ends[n] = name
	}
	all := map[string]int{}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for number, port := range remotes(table) {
			all[number] = port
		}
	}
	for _, name := range f.order {
		for _, p := range family(f.processes[name].current().PID()) {
			for _, number := range sockets(p) {
				if end, is := ends[all[number]]; is && !f.own(name, end) {
					found = append(found, name+" to "+end)
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// listeners are the addresses of parts, those of wires left out.
func (f *Fleet) listeners() map[string]string {
	all := map[string]string{"receiver": f.Receiver}
	for name, addr := range f.addrs {
		if !strings.HasPrefix(name, "wire-") {
			all[name] = addr
		}
	}
	return all
}

// own says whether what listens is of the process itself: an edge is an agent and
// its Envoy, which ask each other.
func (f *Fleet) own(process, end string) bool {
	n, is := strings.CutPrefix(process, "edge-")
	return is && slices.Contains([]string{"gateway-" + n, "chat-" + n, "envoy-" + n, "agent-" + n}, end)
}
