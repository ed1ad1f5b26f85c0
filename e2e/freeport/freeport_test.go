package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Whoever asks at the same time gets other ports, below those of connections, that
// can be listened on.
func TestAddrs(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			addrs, err := Addrs(10)
			if err != nil || len(addrs) != 10 {
				t.Errorf("%v, %v", addrs, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, addr := range addrs {
				_, text, _ := net.SplitHostPort(addr)
				if port, err := strconv.Atoi(text); seen[addr] || err != nil || port < first || port >= end {
					t.Errorf("%s, seen before: %v", addr, seen[addr])
				}
				seen[addr] = true
				l, err := net.Listen("tcp", addr)
				if err != nil {
					t.Error(err)
					continue
				}
				defer l.Close()
			}
		})
	}
	wg.Wait()
}

// Nobody gets a port of a row that somebody has.
func TestRows(t *testing.T) {
	t.Parallel()
	rows, err := Rows(2, 3, 100)
	if err != nil || len(rows) != 2 {
		t.Fatal(rows, err)
	}
	for _, row := range rows {
		var ports []int
		for _, addr := range row {
			_, text, _ := net.SplitHostPort(addr)
			port, _ := strconv.Atoi(text)
			ports = append(ports, port)
			if claim(addr) {
				t.Errorf("%s of %v could be had again", addr, row)
			}
		}
		if len(ports) != 3 || ports[1] != ports[0]+100 || ports[2] != ports[0]+200 {
			t.Errorf("%v", row)
		}
	}
}

// What is claimed, or in use, is not given again, and asking ends.
func TestNoneIsLeft(t *testing.T) {
	t.Parallel()
	base := 10000 + 10*rand.IntN(200) // another run may have claimed some
	used := net.JoinHostPort("127.0.0.1", strconv.Itoa(base+3))
	if l, err := net.Listen("tcp", used); err == nil { // else somebody else uses it
		defer l.Close()
	}
	addrs, err := within(9, 1, 0, base, base+10)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range addrs {
		if row[0] == used {
			t.Error("a port in use was given")
		}
	}
	if more, err := within(1, 1, 0, base, base+10); !errors.Is(err, errNone) {
		t.Errorf("%v, %v: all were given", more, err)
	}
}
