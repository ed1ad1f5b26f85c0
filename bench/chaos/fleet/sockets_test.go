package fleet

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestRemotes(t *testing.T) {
	t.Parallel()
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0000000000000000 100 0 0 10 0
   1: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 22 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:9C41 0100007F:1F90 06 00000000:00000000 00:00000000 00000000     0        0 33 1 0000000000000000 20 4 30 10 -1
   3: 0200A8C0:9C41 0300A8C0:1F90 01 00000000:00000000 00:00000000 00000000     0        0 44 1 0000000000000000 20 4 30 10 -1
   4: 0000000000000000FFFF00000100007F:9C42 0000000000000000FFFF00000100007F:0050 01 00000000:00000000 00:00000000 00000000 0 0 55 1 0
`
	got := remotes([]byte(table))
	if len(got) != 2 || got["22"] != 8080 || got["55"] != 80 {
		t.Errorf("%v", got)
	}
}

// A connection of a process is found by where it leads.
func TestSockets(t *testing.T) {
	t.Parallel()
	addr := echo(t)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	found, ends := false, remotes(table)
	for _, number := range sockets(os.Getpid()) {
		found = found || strings.HasSuffix(addr, ":"+strconv.Itoa(ends[number]))
	}
	if !found {
		t.Error("our own connection is not there")
	}
	if n := sockets(-1); len(n) != 0 {
		t.Errorf("a process that is not there has %v", n)
	}
}

func TestWhatIsOfAnEdgeItself(t *testing.T) {
	t.Parallel()
	f := &Fleet{}
	for _, c := range []struct {
		process, end string
		own          bool
	}{{"edge-1", "envoy-1", true}, {"edge-1", "agent-1", true}, {"edge-1", "gateway-2", false}, {"edge-1", "xds-1", false}, {"runtime", "gateway-1", false}} {
		if f.own(c.process, c.end) != c.own {
			t.Errorf("%s, %s: not %v", c.process, c.end, c.own)
		}
	}
}
