package pgserver

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// choosePort returns fixed if it is set and free, else the port of the last run
// if that is free, else any free one.
func (h home) choosePort(fixed int) (int, error) {
	if fixed != 0 {
		if !isFree(fixed) {
			return 0, fmt.Errorf("port %d, wanted for the private PostgreSQL, is in use", fixed)
		}
		return fixed, nil
	}
	if text, err := os.ReadFile(h.state + ".port"); err == nil {
		if port, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && port > 0 && isFree(port) {
			return port, nil
		}
	}
	return freePort()
}

// recordPort keeps the port for the next run, so that connection strings in a
// developer's shell stay true.
func (h home) recordPort(port int) error {
	return os.WriteFile(h.state+".port", []byte(strconv.Itoa(port)+"\n"), 0o600)
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
