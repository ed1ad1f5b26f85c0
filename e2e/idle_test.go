package e2e

import (
	"net"
	"net/http"
	"syscall"
	"testing"
)

// Ten thousand clients that do nothing, or as many as the limit of open files
// lets an edge take, are no harm to one that does something.
func TestIdleConnections(t *testing.T) {
	s := own(t, nil)
	envoy := s.envoy(t)
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	n := min(10_000, int(min(files.Max, 1<<20))/2-200) // an edge takes half of its files
	before := peakMemory(t, envoy)
	for range n {
		conn, err := net.Dial("tcp", s.front())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	for range 100 {
		r, err := try(http.MethodGet, s.url("/v1/streams"), s.dev["SLUICE_API_KEY"], nil, "Connection", "close")
		if err := unless(err, r, http.StatusOK); err != nil {
			t.Fatal(err)
		}
	}
	grown := peakMemory(t, envoy) - before
	t.Logf("%d idle connections took %d KiB of Envoy, %d bytes each", n, grown>>10, grown/int64(n))
	if grown > int64(n)*32<<10 {
		t.Errorf("Envoy grew by %d bytes", grown)
	}
}
