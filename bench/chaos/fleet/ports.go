package fleet

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken below those that the system gives to connections: a process
// that is killed and started again must find its port free.
const firstPort, lastPort = 12000, 32000

// freeAddrs finds n loopback addresses that nothing listens on.
func freeAddrs(n int) ([]string, error) {
	for range 200 {
		base := firstPort + rand.IntN(lastPort-firstPort-n)
		if addrs, ok := block(base, n); ok {
			return addrs, nil
		}
	}
	return nil, errors.New("no free ports")
}

// block is n addresses from base on, if all are free.
func block(base, n int) ([]string, bool) {
	var addrs []string
	for i := range n {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(base+i))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, false
		}
		defer l.Close()
		addrs = append(addrs, addr)
	}
	return addrs, true
}
