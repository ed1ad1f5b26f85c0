// Command edge measures what the filter costs: requests a second, CPU a request
// and latency of a plainly configured Envoy and of the edge, which checks key,
// scope and rate limit, signs an identity header and sets the rate headers,
// proxying to the same upstream in one run.
//
// Envoys under test have one worker on core 0; the upstream (an Envoy that
// answers by itself) and this program are on core 1. Rounds alternate, and the
// median of each figure is taken.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"sluice.dev/sluice/bench/load"
)

var (
	rounds   = flag.Int("rounds", 5, "alternating rounds")
	seconds  = flag.Int("seconds", 4, "length of a measurement")
	conns    = flag.Int("connections", 16, "connections of the closed loop")
	parted   = flag.Bool("parts", false, "measure what each part of the edge costs, in place of the rest")
	others   = flag.String("filters", "", "folders with other builds of the filters, separated by commas, to compare the edge's with, in place of the rest")
	turn     = flag.Duration("turn", 300*time.Millisecond, "length of a measurement for -parts and -filters")
	openRate = flag.Int("rate", 4000, "requests a second of the open loop")
)

// subject is one way to proxy to the upstream.
type subject struct {
	name    string
	request load.Request
	pid     int // Envoy's
	rate    []float64
	cpu     []float64 // microseconds a request
	p50     []time.Duration
	p99     []time.Duration
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/edge:", err)
		os.Exit(1)
	}
}

func run() error {
	b, err := start()
	if err != nil {
		return err
	}
	defer b.stop()
	switch {
	case *parted:
		return b.explain(*rounds)
	case *others != "":
		return b.compare(*rounds, *others)
	}
	subjects := []*subject{b.plain, b.edge}
	for range *rounds {
		for _, s := range subjects {
			if err := s.measure(); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		slices.Reverse(subjects)
	}
	report(b.plain, b.edge)
	return nil
}

func (s *subject) measure() error {
	d := time.Duration(*seconds) * time.Second
	if err := s.measureCPU(d); err != nil {
		return err
	}
	r, err := load.Open(s.request, *conns, *openRate, d)
	if err != nil {
		return err
	}
	s.p50, s.p99 = append(s.p50, r.Quantile(0.5)), append(s.p99, r.Quantile(0.99))
	return nil
}

// measureCPU runs the closed loop for d.
func (s *subject) measureCPU(d time.Duration) error {
	if _, err := load.Closed(s.request, *conns, d/4); err != nil { // warm up
		return err
	}
	before, err := cpuTime(s.pid)
	if err != nil {
		return err
	}
	r, err := load.Closed(s.request, *conns, d)
	if err != nil {
		return err
	}
	after, err := cpuTime(s.pid)
	s.rate = append(s.rate, r.Rate())
	s.cpu = append(s.cpu, float64(after-before)/1000/float64(r.Requests))
	return err
}

func report(plain, edge *subject) {
	fmt.Printf("| proxying a 1 KiB GET, one core | requests/s | CPU µs/request | p50 at %d/s | p99 at %d/s |\n|---|---|---|---|---|\n", *openRate, *openRate)
	for _, s := range []*subject{plain, edge} {
		fmt.Printf("| %s | %.0f | %.1f | %v | %v |\n", s.name, median(s.rate), median(s.cpu), round(median(s.p50)), round(median(s.p99)))
	}
	fmt.Printf("| ratio | %.2f | +%.1f | +%v | +%v |\n", median(edge.rate)/median(plain.rate), median(edge.cpu)-median(plain.cpu),
		round(median(edge.p50)-median(plain.p50)), round(median(edge.p99)-median(plain.p99)))
}

func round(d time.Duration) time.Duration { return d.Round(time.Microsecond) }

func median[T float64 | time.Duration](v []T) T {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}
