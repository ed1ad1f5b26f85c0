package bindcheck

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFreeAddressIsFree(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	for range 2 {
		if err := Free(addr, "X_ADDR"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheErrorNamesAddressHolderAndRemedy(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = Free(l.Addr().String(), "X_ADDR")
	want := fmt.Sprintf("%s is in use by %s (process %d): stop that, or set X_ADDR to another address", l.Addr(), comm(t), os.Getpid())
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := Free(l.Addr().String(), ""); err == nil || strings.Contains(err.Error(), "set ") {
		t.Errorf("without a variable: %v", err)
	}
}

// comm is this process's name as the kernel has it: at most 15 bytes.
func comm(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestAnAddressOfAnotherMachine(t *testing.T) {
	t.Parallel()
	err := Free("192.0.2.1:80", "X_ADDR")
	if err == nil || !strings.Contains(err.Error(), "192.0.2.1:80") || !strings.Contains(err.Error(), "X_ADDR") {
		t.Fatalf("err = %v", err)
	}
}

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0 0 10 0
   2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100 0 0 10 0
   3: short
`

func TestListeningInodes(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	listeningInodes(table, 0x1f90, got)
	if len(got) != 1 || !got["socket:[4711]"] {
		t.Fatalf("got %v, want the one socket that listens on the port", got)
	}
}

func TestListenerInAnotherProc(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("net/tcp", table)
	write("77/comm", "caddy\n")
	write("77/fd/0", "no link")
	if err := os.Symlink("socket:[4711]", filepath.Join(proc, "77/fd/3")); err != nil {
		t.Fatal(err)
	}
	if pid, name := listener(proc, "8080"); pid != 77 || name != "caddy" {
		t.Errorf("port 8080: %d %q, want 77 caddy", pid, name)
	}
	for _, port := range []string{"8081", "8082", "http"} {
		if pid, _ := listener(proc, port); pid != 0 {
			t.Errorf("port %s: process %d, want none known", port, pid)
		}
	}
}

func FuzzListeningInodes(f *testing.F) {
	f.Add(table, 8080)
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, text string, port int) {
		got := map[string]bool{}
		listeningInodes(text, port, got)
		if len(got) > strings.Count(text, "\n")+1 {
			t.Fatalf("%d sockets from %d lines", len(got), strings.Count(text, "\n")+1)
		}
	})
}

func TestUDPAndOtherAddresses(t *testing.T) {
	t.Parallel()
	addr, err := Other("127.0.0.1:1")
	if err != nil || Free(addr, "X") != nil {
		t.Fatal(addr, err)
	}
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := FreeUDP(addr, "X_ADDR"); err == nil || !strings.Contains(err.Error(), "X_ADDR") || !strings.Contains(err.Error(), addr) {
		t.Errorf("%v", err)
	}
	if _, err := Other("nowhere"); err == nil {
		t.Error("an address without a port has another")
	}
}
