package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	plain, bare bool   // without our configuration; without filters
	part        part   // that is left out
	programs    string // the folder with its filters; empty: the edge's own
}

// What is counted when nothing else is asked for, and held to what was recorded.
const (
	plainName  = "plain Envoy"
	configName = "the edge's configuration without its filters"
	edgeName   = "the edge"
)

// wholes are the plain Envoy, one with the edge's configuration and no filters, and
// the whole edge.
var wholes = []toCount{
	{plainName, true, true, part{}, ""},
	{configName, false, true, parts[0], ""},
	{edgeName, false, false, filterParts[0], ""},
	{"the edge without the filter that checks requests, which is off for the route", false, false,
		part{"checks", func(c *testbed.Config) { c.LeaveOut("sluice.validate") }}, ""},
}

// chosenWholes are those of wholes that -only names.
func chosenWholes() []toCount {
	return slices.DeleteFunc(slices.Clone(wholes), func(s toCount) bool { return !strings.Contains(s.name, *only) })
}

// withFilters are the edge with its own filters, and with those of each of dirs, folders
// that are separated by commas.
func withFilters(dirs string) (list []toCount, err error) {
	list = append(list, wholes[slices.IndexFunc(wholes, func(s toCount) bool { return s.name == edgeName })])
	for _, dir := range strings.Split(dirs, ",") {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
		list = append(list, toCount{filepath.Base(dir), false, false, filterParts[0], dir})
	}
	return list, nil
}

// withoutParts are the edge's configuration without filters and without each part.
func withoutParts() (list []toCount) {
	for _, p := range parts {
		if !strings.Contains(p.name, *only) && p.name != parts[0].name {
			continue
		}
		list = append(list, toCount{p.name, false, true, p, ""})
	}
	return list
}

// together is how many Envoys are started at once: each has one thread under Valgrind, and
// most of what it does is to compile WASM before it serves.
const together = 4

// count prints how many instructions a request takes in each of list, and returns that. It
// takes some minutes.
func count(b *testbed.Bed, requests int, list []toCount) (map[string]int64, error) {
	found := make(map[string]int64, len(list))
	fmt.Println("| instructions a request, in user space | |\n|---|---|")
	for some := range slices.Chunk(list, together) {
		started := make([]*counted, len(some))
		for i, s := range some {
			started[i] = &counted{name: s.name, request: b.Edge.Request, out: filepath.Join(b.Dir, fmt.Sprintf("callgrind-%d", len(found)+i))}
			if err := started[i].start(b, s); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
		}
		for _, c := range started {
			n, err := c.perRequest(requests)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			fmt.Printf("| %s | %d |\n", c.name, n)
			found[c.name] = n
			if err := syscall.Kill(c.pid, syscall.SIGKILL); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// start starts an Envoy under Valgrind.
func (c *counted) start(b *testbed.Bed, s toCount) error {
	addrs, err := freeport.Addrs(1)
	if err != nil {
		return err
	}
	c.request.Addr = addrs[0]
	text := testbed.PlainConfig(addrs[0], b.Upstream)
	if !s.plain {
		config, err := b.Config()
		if err != nil {
			return err
		}
		if s.bare {
			filterParts[len(filterParts)-1].drop(config)
		}
		s.part.drop(config)
		if text, err = config.Text(addrs[0], b.Upstream, cmp.Or(s.programs, testbed.Programs())); err != nil {
			return err
		}
	}
	c.pid, err = b.Envoy("counted-"+filepath.Base(c.out), text, "valgrind", "-q", "--tool=callgrind", "--smc-check=all-non-file", "--instr-atstart=no", "--callgrind-out-file="+c.out)
	if err != nil {
		return errors.Join(err, errors.New("-count needs valgrind"))
	}
	return nil
}

// startPatience is how long an Envoy under Valgrind may take until it serves: it runs several
// times slower even while nothing is counted, and compiles WASM before it opens a listener.
const startPatience = 40 * time.Minute

// ready waits until the Envoy serves. It has no core of its own: what it counts does not
// depend on how much of one it gets.
func (c *counted) ready() error {
	subject := testbed.Subject{Name: c.name, Request: c.request, PID: c.pid}
	for late := time.Now().Add(startPatience); ; {
		err := harness.Until(subject.Answers) // or until Patience is over
		if err == nil || time.Now().After(late) {
			return err
		}
		if gone := syscall.Kill(c.pid, 0); gone != nil {
			return errors.Join(err, errors.New("it has ended before it served"))
		}
	}
}

// perRequest counts over that many requests, less what the same time takes with a few. What
// workers count they hand over twice in a second, if there is anything: on a busy machine,
// where the requests take long, that would count as theirs.
func (c *counted) perRequest(requests int) (int64, error) {
	if err := c.ready(); err != nil {
		return 0, err
	}
	if err := c.control("-i", "on"); err != nil { // counting makes a start ten times as long
		return 0, err
	}
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
	few, err := load.Open(c.request, 1, fewRate, took)
	if err != nil {
		return 0, err
	}
	calm, err := c.dump()
	if few.Requests >= requests/2 {
		return 0, fmt.Errorf("%s: %d requests took %v: the machine is too busy to count so few", c.name, requests, took)
	}
	return (busy - calm) / int64(requests-few.Requests), err
}

// fewRate is how many requests a second are few, and yet one or more for each time that
// something is handed over.
const fewRate = 4

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
		raw, err := os.ReadFile(fmt.Sprintf("%s.%d", c.out, c.dumps))
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

func (c *counted) control(what ...string) error {
	out, err := exec.Command("callgrind_control", append(what, strconv.Itoa(c.pid))...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("callgrind_control %v: %w: %s", what, err, out)
	}
	return err
}
