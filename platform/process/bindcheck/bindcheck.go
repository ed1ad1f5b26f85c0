// Package bindcheck finds out before anything is started whether an address can
// be listened on, and if not, who holds it.
package bindcheck

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Free returns nil if addr (host:port) can be listened on now. Otherwise the
// error is one line: the address, the process that holds it as far as /proc
// tells, and variable, the environment variable that moves the address. An empty
// variable is left out.
//
// The test is a plain bind without SO_REUSEPORT, so that it fails beside an
// Envoy that would share the port with another.
func Free(addr, variable string) error {
	l, err := net.Listen("tcp", addr)
	if err == nil {
		return l.Close()
	}
	move := "choose another address"
	if variable != "" {
		move = "set " + variable + " to another address"
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use%s: stop that, or %s", addr, by(addr), move)
	}
	return fmt.Errorf("cannot listen on %s: %w: %s", addr, reason(err), move)
}

// by names the process that listens on addr, as " by NAME (process N)".
func by(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	if pid, name := listener("/proc", port); pid != 0 {
		return fmt.Sprintf(" by %s (process %d)", name, pid)
	}
	return ""
}

// reason is the innermost error: without "listen tcp 1.2.3.4:80: bind:".
func reason(err error) error {
	if op := new(net.OpError); errors.As(err, &op) {
		return op.Err
	}
	return err
}

// FreeUDP is Free for a UDP address; the error does not name who holds it.
func FreeUDP(addr, variable string) error {
	c, err := net.ListenPacket("udp", addr)
	if err == nil {
		return c.Close()
	}
	return fmt.Errorf("cannot listen on %s (UDP): %w: set %s to another address", addr, reason(err), variable)
}

// Other returns an address on addr's host whose port is free at the moment, for
// TCP and for UDP.
func Other(addr string) (string, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	for range 10 {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return "", fmt.Errorf("no port is free on %s: %w", host, reason(err))
		}
		found := l.Addr().String()
		_ = l.Close()
		if FreeUDP(found, "") == nil {
			return found, nil
		}
	}
	return "", errors.New("no port is free for TCP and UDP on " + host)
}
