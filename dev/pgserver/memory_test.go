package pgserver

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAvailable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"MemTotal:       24000 kB\nMemFree:  7 kB\nMemAvailable:   2048 kB\nBuffers: 1 kB\n": 2 << 20,
		"MemAvailable:   3 kB":         3 << 10,
		"MemTotal:       24000 kB\n":   0,
		"MemAvailable:   a lot kB\n":   0,
		"NotMemAvailable:   2048 kB\n": 0,
		"":                             0,
	} {
		if got := available(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := freeMemory("/proc"); got != 0 {
		t.Errorf("/proc has room for %d bytes of files", got)
	}
}

// The files of a server are in memory if that was wanted and there is room.
func TestAServerInMemory(t *testing.T) {
	t.Parallel()
	for memory, parent := range map[bool]string{true: temporary(true), false: os.TempDir()} {
		s, err := Start(context.Background(), Config{Ephemeral: true, Memory: memory, Path: os.Getenv("PATH")})
		if err != nil {
			t.Fatal(err)
		}
		base := s.home.base
		if filepath.Dir(base) != parent && filepath.Dir(base) != farHomes {
			t.Errorf("%v: the files are in %s, not in %s", memory, base, parent)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(base); !os.IsNotExist(err) {
			t.Errorf("%s is left behind (%v)", base, err)
		}
	}
	if want := freeMemory(memoryFolder) >= leastMemory; want != (temporary(true) == memoryFolder) {
		t.Errorf("there is room: %v, and files go to %s", want, temporary(true))
	}
}

func TestRemoveAbandoned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long := time.Now().Add(-2 * time.Hour)
	for name, made := range map[string]time.Time{ephemeralName + "dead": long, ephemeralName + "served": long, ephemeralName + "new": time.Now(), "else": long} {
		if err := os.MkdirAll(filepath.Join(dir, name, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		if name == ephemeralName+"served" {
			server := exec.Command("/bin/sleep", "1000") // postgres has its data as its folder, too
			server.Dir = filepath.Join(dir, name, "data")
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
			if err := os.WriteFile(filepath.Join(server.Dir, "postmaster.pid"), []byte(strconv.Itoa(server.Process.Pid)+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(filepath.Join(dir, name), made, made); err != nil {
			t.Fatal(err)
		}
	}
	removeAbandoned(dir, time.Now().Add(-time.Hour))
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range left {
		names = append(names, strings.TrimPrefix(entry.Name(), ephemeralName))
	}
	if got := strings.Join(names, " "); got != "else new served" {
		t.Errorf("left are %s", got)
	}
}
