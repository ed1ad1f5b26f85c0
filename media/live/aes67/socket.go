package aes67

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// Network is what of this machine's network flows may use. Its zero value allows
// nothing.
type Network struct {
	// Interfaces are those that flows come in and go out by; the first one of them
	// sends.
	Interfaces []Interface
	// Allow are the addresses that flows may have.
	Allow []netip.Prefix
}

// Interface is one interface of this machine, and its address of IPv4.
type Interface struct {
	Name string
	Addr netip.Addr
}

// Interfaces finds interfaces by their names, separated by commas. It fails for one that
// is not there, or has no address of IPv4.
func Interfaces(names string) (found []Interface, err error) {
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		i, err := net.InterfaceByName(name)
		if err != nil {
			return nil, fmt.Errorf("interface %q: %w", name, err)
		}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("interface %q: %w", name, err)
		}
		var own netip.Addr
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !own.IsValid() {
				own = p.Addr()
			}
		}
		if !own.IsValid() {
			return nil, fmt.Errorf("interface %q has no address of IPv4", name)
		}
		found = append(found, Interface{Name: name, Addr: own})
	}
	return found, nil
}

// Usable reports whether the operator allows anything.
func (n Network) Usable() bool { return len(n.Interfaces) > 0 && len(n.Allow) > 0 }

// Allows reports whether a flow may have address a.
func (n Network) Allows(a netip.Addr) bool {
	for _, p := range n.Allow {
		if p.Contains(a) {
			return len(n.Interfaces) > 0
		}
	}
	return false
}

// errNetwork says that a flow has an address that the operator does not allow.
var errNetwork = errors.New("the operator does not allow flows of this address")

// listen opens a socket for what comes to addr: a group, which it joins on every
// interface, or an address of this machine. source, if valid, is the only sender.
func (n Network) listen(ctx context.Context, addr, source netip.Addr, port int) (*net.UDPConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		control := c.Control(func(fd uintptr) {
			// Several may listen to a group; of one address each packet has one reader.
			if addr.IsMulticast() {
				err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
					unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0))
			}
		})
		return errors.Join(control, err)
	}}
	pc, err := lc.ListenPacket(ctx, "udp4", net.JoinHostPort(addr.String(), strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listen to %s: %w", addr, err)
	}
	c := pc.(*net.UDPConn)
	_ = c.SetReadBuffer(1 << 20) // less, if the kernel gives less
	if !addr.IsMulticast() {
		return c, nil
	}
	p := ipv4.NewPacketConn(c)
	for _, own := range n.Interfaces {
		i, err := net.InterfaceByName(own.Name)
		group := &net.UDPAddr{IP: addr.AsSlice()}
		if err == nil && source.IsValid() {
			err = p.JoinSourceSpecificGroup(i, group, &net.UDPAddr{IP: source.AsSlice()})
		} else if err == nil {
			err = p.JoinGroup(i, group)
		}
		if err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("join %s on %s: %w", addr, own.Name, err)
		}
	}
	return c, nil
}

// expedited is the class of service of sound (AES67, 6.2: AF41), as the kernel wants it.
const expedited = 34 << 2

// dial opens a socket that sends to addr by the first interface.
func (n Network) dial(ctx context.Context, addr netip.Addr, port, ttl int) (*net.UDPConn, error) {
	own := n.Interfaces[0]
	d := net.Dialer{LocalAddr: &net.UDPAddr{IP: own.Addr.AsSlice()}}
	nc, err := d.DialContext(ctx, "udp4", net.JoinHostPort(addr.String(), strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("send to %s: %w", addr, err)
	}
	c := nc.(*net.UDPConn)
	p := ipv4.NewPacketConn(c)
	err = p.SetTOS(expedited)
	if err == nil && addr.IsMulticast() {
		var i *net.Interface
		if i, err = net.InterfaceByName(own.Name); err == nil {
			err = errors.Join(p.SetMulticastInterface(i), p.SetMulticastTTL(ttl), p.SetMulticastLoopback(true))
		}
	}
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("send to %s: %w", addr, err)
	}
	return c, nil
}
