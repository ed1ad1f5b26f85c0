package load

import (
	"net"
	"time"
)

// Until tries f for a minute and returns its last error. It looks again and again
// because what it waits for are foreign processes, which give no signal; nothing
// is measured meanwhile.
func Until(f func() error) error {
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = f(); err == nil {
			return nil
		}
	}
	return err
}

// FreeAddrs holds n loopback ports at once, so that they differ, and gives them up.
func FreeAddrs(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}
