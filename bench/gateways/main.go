// Command gateways measures public gateways beside the edge: each has one core,
// proxies the same request to the same upstream in the same run, and checks as
// much of it as it can, see gateways. Rounds alternate, and the median of each
// figure is taken; latency is that of an open loop, by vegeta.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	"sluice.dev/sluice/bench/load"
	"sluice.dev/sluice/bench/testbed"
)

var (
	rounds  = flag.Int("rounds", 3, "alternating rounds")
	turn    = flag.Duration("turn", 3*time.Second, "length of a measurement")
	conns   = flag.Int("connections", 16, "connections")
	rate    = flag.Int("rate", 3000, "requests a second of the open loop")
	install = flag.Bool("install", false, "fetch and build the gateways that are not there: some minutes, once")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/gateways:", err)
		os.Exit(1)
	}
}

func run() error {
	b, err := testbed.Start()
	if err != nil {
		return err
	}
	defer b.Close()
	b.Edge.Name = "the edge: key, scope, account's and fleet's limit, signed identity, all headers, metered"
	list := []*testbed.Subject{b.Plain, b.Edge}
	var absent []string
	for _, g := range gateways {
		s, err := g.start(b)
		if err != nil {
			absent = append(absent, fmt.Sprintf("%s: %v", g.name, err))
			continue
		}
		list = append(list, s)
	}
	for range *rounds {
		for _, s := range list {
			if err := measure(s); err != nil {
				return err
			}
		}
		slices.Reverse(list)
	}
	report(b, list)
	for _, a := range absent {
		fmt.Println("\nnot measured:", a)
	}
	return nil
}

func measure(s *testbed.Subject) error {
	if err := s.Measure(*conns, *turn); err != nil {
		return err
	}
	r, err := open(s)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	s.P50, s.P99 = append(s.P50, r.Latencies.P50), append(s.P99, r.Latencies.P99)
	return nil
}

// open is the open loop.
func open(s *testbed.Subject) (*vegeta.Metrics, error) {
	target := vegeta.Target{Method: http.MethodGet, URL: "http://" + s.Request.Addr + s.Request.Path, Header: http.Header{}}
	if key := s.Request.Key(); key != "" {
		target.Header.Set("Authorization", "Bearer "+key)
	}
	attacker := vegeta.NewAttacker(vegeta.Workers(uint64(*conns)), vegeta.Connections(*conns), vegeta.KeepAlive(true))
	var m vegeta.Metrics
	for r := range attacker.Attack(vegeta.NewStaticTargeter(target), vegeta.ConstantPacer{Freq: *rate, Per: time.Second}, *turn, s.Name) {
		m.Add(r)
	}
	m.Close()
	if m.Success < 1 {
		return nil, fmt.Errorf("%.2f%% of the answers are no success: %v", 100*(1-m.Success), m.Errors)
	}
	return &m, nil
}

func report(b *testbed.Bed, list []*testbed.Subject) {
	slices.SortFunc(list, func(x, y *testbed.Subject) int { return int(load.Median(y.Rate) - load.Median(x.Rate)) })
	fmt.Printf("| one core, a 1 KiB GET | requests/s | × plain Envoy | CPU µs/request | p50 at %d/s | p99 |\n|---|---|---|---|---|---|\n", *rate)
	for _, s := range list {
		fmt.Printf("| %s | %.0f | %.2f | %.1f | %v | %v |\n", s.Name, load.Median(s.Rate), load.Median(s.Rate)/load.Median(b.Plain.Rate), load.Median(s.CPU),
			load.Median(s.P50).Round(time.Microsecond), load.Median(s.P99).Round(10*time.Microsecond))
	}
}
