package main

import (
	"errors"
	"io"
	"net"
	"sync"

	"sluice.dev/sluice/bench/testbed"
	"sluice.dev/sluice/filters/edgeapi"
)

// lane is the way of an Envoy to the feed, which can be closed: the Envoy then goes
// on with the keys that it has.
type lane struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	open     []net.Conn
}

// newLane leads the feed of c through a lane.
func newLane(c *testbed.Config) (*lane, error) {
	clusters, _ := c.Boot["static_resources"].(testbed.Object)["clusters"].([]any)
	for _, e := range clusters {
		if cluster := e.(testbed.Object); cluster["name"] == edgeapi.FeedCluster {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return nil, err
			}
			way := &lane{listener: l, to: testbed.Redirect(cluster, l.Addr().String())}
			go way.serve()
			return way, nil
		}
	}
	return nil, errors.New("the edge's configuration lacks " + edgeapi.FeedCluster)
}

func (l *lane) serve() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", l.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		l.mu.Lock()
		l.open = append(l.open, from, to)
		l.mu.Unlock()
		go pass(to, from)
		go pass(from, to)
	}
}

// pass copies until either end closes.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}

// close cuts the lane.
func (l *lane) close() {
	_ = l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
}
