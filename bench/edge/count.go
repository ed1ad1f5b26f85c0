package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/bench/load"
	"sluice.dev/sluice/bench/testbed"
	"sluice.dev/sluice/e2e/freeport"
	"sluice.dev/sluice/e2e/harness"
)

// counted is an Envoy under Valgrind's callgrind. Instructions do not depend on
// what else the machine does, so they tell more than times of two builds of the
// filter do; they do not tell what the kernel and cache misses take.
type counted struct {
	name    string
	request load.Request
	pid     int
	out     string // where the counts are dumped, with a number behind
	dumps   int
}

// toCount is an Envoy whose instructions are counted.
type toCount struct {
	name        string
	plain, bare bool // without our configuration; without filters
	part        part // that is left out
}

// wholes are the plain Envoy, one with the edge's configuration and no filters, and
// the whole edge.
var wholes = []toCount{
	{"plain Envoy", true, true, part{}},
	{"the edge's configuration without its filters", false, true, parts[0]},
	{"the edge", false, false, filterParts[0]},
	{"the edge without the filter that checks requests, which is off for the route", false, false,
		part{"checks", func(c *testbed.Config) { c.LeaveOut("sluice.validate") }}},
}

// withoutParts are the edge's configuration without filters and without each part.
func withoutParts() (list []toCount) {
	for _, p := range parts {
		if !strings.Contains(p.name, *only) && p.name != parts[0].name {
			continue
		}
		list = append(list, toCount{p.name, false, true, p})
	}
	return list
}

// count prints how many instructions a request takes in each of list. It takes
// some minutes, most of them for the compilation of WASM.
func count(b *testbed.Bed, requests int, list []toCount) error {
	fmt.Println("| instructions a request, in user space | |\n|---|---|")
	for _, s := range list {
		c := &counted{name: s.name, request: b.Edge.Request, out: filepath.Join(b.Dir, "callgrind")}
		if err := c.start(b, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		n, err := c.perRequest(requests)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Printf("| %s | %d |\n", s.name, n)
	}
	return nil
}

func (c *counted) start(b *testbed.Bed, s toCount) error {
	addrs, err := freeport.Addrs(1)
	if err != nil {
		return err
	}
	c.request.Addr = addrs[0]
	text, err := testbed.PlainConfig(addrs[0], b.Upstream), nil
	if !s.plain {
		config, err := b.Config()
		if err != nil {
			return err
		}
		if s.bare {
			filterParts[len(filterParts)-1].drop(config)
		}
		s.part.drop(config)
		if text, err = config.Text(addrs[0], b.Upstream, testbed.Programs()); err != nil {
			return err
		}
	}
	c.pid, err = b.Envoy("counted-"+c.name, text, "valgrind", "-q", "--tool=callgrind", "--smc-check=all-non-file", "--callgrind-out-file="+c.out+"-"+c.name)
	if err != nil {
		return errors.Join(err, errors.New("-count needs valgrind"))
	}
	subject := testbed.Subject{Name: c.name, Request: c.request, PID: c.pid}
	for range 5 { // times Patience
		if err = subject.Ready(); err == nil {
			return nil
		}
	}
	return err
}

// perRequest counts over that many requests, less what the same time takes
// without any.
func (c *counted) perRequest(requests int) (int64, error) {
	if _, err := c.during(requests); err != nil { // warm up
		return 0, err
	}
	began := time.Now()
	busy, err := c.during(requests)
	if err != nil {
		return 0, err
	}
	took := time.Since(began)
	if err := c.control("-z"); err != nil {
		return 0, err
	}
	time.Sleep(took)
	idle, err := c.dump()
	return (busy - idle) / int64(requests), err
}

// during counts while requests are made, one after the other.
func (c *counted) during(requests int) (int64, error) {
	if err := c.control("-z"); err != nil {
		return 0, err
	}
	if err := load.Times(c.request, requests); err != nil {
		return 0, err
	}
	return c.dump()
}

// dump returns what was counted since the last one or since -z.
func (c *counted) dump() (int64, error) {
	if err := c.control("-d"); err != nil {
		return 0, err
	}
	c.dumps++
	var total int64
	err := harness.Until(func() error {
		raw, err := os.ReadFile(fmt.Sprintf("%s-%s.%d", c.out, c.name, c.dumps))
		if err != nil {
			return err
		}
		_, after, ok := strings.Cut(string(raw), "\ntotals: ")
		if !ok {
			return errors.New("the dump is not whole yet")
		}
		total, err = strconv.ParseInt(strings.TrimSpace(after), 10, 64)
		return err
	})
	return total, err
}

func (c *counted) control(what string) error {
	out, err := exec.Command("callgrind_control", what, strconv.Itoa(c.pid)).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("callgrind_control %s: %w: %s", what, err, out)
	}
	return err
}
