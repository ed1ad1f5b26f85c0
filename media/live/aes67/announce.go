package aes67

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
)

// sapPort is SAP's, by UDP.
const sapPort = 9875

// sapGroups are where announcements are made: that of the organisation's and the
// site's scope, which devices of AES67 use, and the one of all.
var sapGroups = []netip.Addr{netip.MustParseAddr("239.255.255.255"), netip.MustParseAddr("239.195.255.255"), netip.MustParseAddr("224.2.127.254")}

// every is the time between two announcements of a flow.
const every = 30 * time.Second

// Listen tells of every announcement that is heard until ctx ends. One that cannot be
// read is left out.
func (n Network) Listen(ctx context.Context, tell func(Announcement)) error {
	return n.hearAll(ctx, sapGroups, sapPort, tell)
}

// hearAll reads groups until ctx ends or one of them fails; then no socket is open.
func (n Network) hearAll(ctx context.Context, groups []netip.Addr, port int, tell func(Announcement)) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, addr := range groups {
		group.Go(func() error {
			c, err := n.listen(ctx, addr, netip.Addr{}, port)
			if err != nil {
				return err
			}
			return hear(ctx, c, tell)
		})
	}
	return group.Wait()
}

// hear reads one group.
func hear(ctx context.Context, c *net.UDPConn, tell func(Announcement)) error {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	defer func() { _ = c.Close() }()
	datagram := make([]byte, MaxSDP+512)
	for {
		size, _, err := c.ReadFromUDPAddrPort(datagram)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("listen to announcements: %w", err)
		}
		if a, err := ParseSAP(datagram[:size]); err == nil {
			tell(a)
		}
	}
}

// Announce announces the flow of a description until ctx ends, and then that it is
// gone.
func (n Network) Announce(ctx context.Context, description string) error {
	c, err := n.dial(ctx, sapGroups[0], sapPort, 255)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		_, err := c.Write(Announce(n.Origin(), description, false))
		if err != nil && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("announce: %w", err)
		}
		select {
		case <-ctx.Done():
			_, _ = c.Write(Announce(n.Origin(), description, true))
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
