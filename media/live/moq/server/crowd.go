package server

import (
	"errors"
	"net"
	"net/netip"
	"sync"
)

// Limits says how much there may be at once.
type Limits struct {
	Sessions   int // of all. 0: 4,096
	PerAccount int // sessions of one account's streams. 0: a quarter of Sessions
	PerAddress int // connections of one address (of IPv6: its /64). 0: 64
}

// crowd counts who is there.
type crowd struct {
	limits Limits

	mu    sync.Mutex
	all   int
	count map[string]int // by place
}

func newCrowd(l Limits) *crowd {
	if l.Sessions == 0 {
		l.Sessions = 4096
	}
	if l.PerAccount == 0 {
		l.PerAccount = max(1, l.Sessions/4)
	}
	if l.PerAddress == 0 {
		l.PerAddress = 64
	}
	return &crowd{limits: l, count: map[string]int{}}
}

// errFull says that there are too many already.
var errFull = errors.New("too many sessions")

// place is what is counted together, and how many there may be.
type place struct {
	name  string
	whole bool // an address, each of whose connections counts among all
}

// accountPlace is that of the sessions of an owner's streams.
func accountPlace(owner string) place { return place{name: "account " + owner} }

// addressPlace is that of the connections of a customer of a network.
func addressPlace(a net.Addr) place {
	p := place{whole: true, name: "address"}
	if u, ok := a.(*net.UDPAddr); ok {
		ip := u.AddrPort().Addr().Unmap().WithZone("")
		bits := 32
		if ip.Is6() {
			bits = 64
		}
		p.name = "address " + netip.PrefixFrom(ip, bits).Masked().String()
	}
	return p
}

// enter counts one more; leave takes it back, and is called once.
func (c *crowd) enter(p place) (leave func(), err error) {
	most := c.limits.PerAccount
	if p.whole {
		most = c.limits.PerAddress
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count[p.name] >= most || p.whole && c.all >= c.limits.Sessions {
		return nil, errFull
	}
	c.count[p.name]++
	if p.whole {
		c.all++
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.count[p.name]--; c.count[p.name] == 0 {
			delete(c.count, p.name)
		}
		if p.whole {
			c.all--
		}
	}, nil
}

// large reports whether there are so many that those who come must prove their
// address first (RFC 9000, section 8.1.2).
func (c *crowd) large() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all >= c.limits.Sessions/8
}
