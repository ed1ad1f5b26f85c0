package sip

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// What strangers may send us. All of it is counted for each address; of IPv6 for each
// /64, which is what one customer of a network has.
const (
	maxMessage    = 16 << 10 // bytes of a SIP message
	maxMessages   = 50       // a second
	maxRequests   = 10       // a second that begin a call or a registration
	maxConns      = 512      // TCP connections of all
	maxConnsOfOne = 32
	idleConn      = 10 * time.Minute
	maxSources    = 50_000 // changes of source after which the library's table of them is dropped
)

// rate counts what comes from each address in a second. It is safe for concurrent use,
// takes constant time and remembers at most maxRated addresses; those beyond share one
// count.
type rate struct {
	most int
	now  func() time.Time

	mu     sync.Mutex
	second int64
	counts map[netip.Addr]int
}

// maxRated bounds the addresses that are told apart within a second.
const maxRated = 8192

// allow counts one more of addr; false: it is one too many.
func (r *rate) allow(addr netip.Addr) bool {
	addr = group(addr)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.now().Unix(); s != r.second || r.counts == nil {
		r.second, r.counts = s, map[netip.Addr]int{}
	}
	if _, known := r.counts[addr]; !known && len(r.counts) >= maxRated {
		addr = netip.Addr{}
	}
	r.counts[addr]++
	return r.counts[addr] <= r.most
}

// group is what counts as one address.
func group(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if addr.Is6() {
		p, err := addr.Prefix(64)
		if err == nil {
			return p.Addr()
		}
	}
	return addr
}

// guarded is a UDP socket that drops what is too large or too much before anybody reads
// it. The library remembers every source for as long as it reads from a socket; so that
// forged ones do not fill the memory, reading ends after maxSources changes and begins
// anew on the same socket.
type guarded struct {
	net.PacketConn
	rate *rate

	last    string
	changes int
}

// ReadFrom reads the next datagram that passes.
func (g *guarded) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := g.PacketConn.ReadFrom(p)
		if err != nil {
			return n, from, err
		}
		addr, ok := netip.AddrFromSlice(from.(*net.UDPAddr).IP)
		if !ok || n > maxMessage || !g.rate.allow(addr) {
			continue
		}
		if text := from.String(); text != g.last {
			g.last = text
			if g.changes++; g.changes > maxSources {
				return 0, nil, net.ErrClosed
			}
		}
		return n, from, nil
	}
}

// Close does nothing: the socket is closed by who opened it.
func (g *guarded) Close() error { return nil }

// serveUDP hands what comes to a socket to serve until ctx ends, which closes it.
func serveUDP(ctx context.Context, conn net.PacketConn, r *rate, serve func(net.PacketConn) error) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	for ctx.Err() == nil {
		g := &guarded{PacketConn: conn, rate: r}
		if err := serve(g); err != nil && ctx.Err() == nil {
			return err
		}
		if g.changes <= maxSources {
			return nil // the socket is closed
		}
	}
	return nil
}

// gate is a TCP listener that takes a bounded number of connections, of all and of one
// address, and closes those that are silent for long, do not read, or send too much.
type gate struct {
	net.Listener
	rate *rate // of messages

	mu   sync.Mutex
	all  int
	each map[netip.Addr]int
}

// Accept takes the next connection that is not one too many.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		addr, ok := c.RemoteAddr().(*net.TCPAddr)
		if !ok || !g.enter(group(addr.AddrPort().Addr())) {
			c.Close()
			continue
		}
		return &gated{Conn: c, rate: g.rate, addr: addr.AddrPort().Addr(), leave: sync.OnceFunc(func() { g.leave(group(addr.AddrPort().Addr())) })}, nil
	}
}

func (g *gate) enter(addr netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.each == nil {
		g.each = map[netip.Addr]int{}
	}
	if g.all >= maxConns || g.each[addr] >= maxConnsOfOne {
		return false
	}
	g.all++
	g.each[addr]++
	return true
}

func (g *gate) leave(addr netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
	if g.each[addr]--; g.each[addr] == 0 {
		delete(g.each, addr)
	}
}

// gated is a connection through a gate.
type gated struct {
	net.Conn
	rate  *rate
	addr  netip.Addr
	leave func()
	tail  []byte // what was read last, of the length of an end of headers less one
}

// endOfHeaders stands once in every message.
var endOfHeaders = []byte("\r\n\r\n")

// Read reads within idleConn, and ends the connection with the message that is one too
// many of its address.
func (g *gated) Read(p []byte) (int, error) {
	if err := g.SetReadDeadline(time.Now().Add(idleConn)); err != nil {
		return 0, err
	}
	n, err := g.Conn.Read(p)
	read := append(g.tail, p[:n]...)
	for range bytes.Count(read, endOfHeaders) {
		if !g.rate.allow(g.addr) {
			return 0, errTooMany
		}
	}
	g.tail = bytes.Clone(read[max(0, len(read)-len(endOfHeaders)+1):])
	return n, err
}

// errTooMany ends a connection that sends too much.
var errTooMany = errors.New("too many messages")

// maxWrite is how long the other side may leave unread what is sent to it.
const maxWrite = 5 * time.Second

// Write writes within maxWrite. A message that was written in part would spoil those
// after it: the connection ends.
func (g *gated) Write(p []byte) (int, error) {
	if err := g.SetWriteDeadline(time.Now().Add(maxWrite)); err != nil {
		return 0, err
	}
	n, err := g.Conn.Write(p)
	if err != nil {
		_ = g.Close()
	}
	return n, err
}

// Close closes it, and lets another in.
func (g *gated) Close() error {
	g.leave()
	return g.Conn.Close()
}
