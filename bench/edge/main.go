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
	"sluice.dev/sluice/bench/testbed"
)

var (
	rounds   = flag.Int("rounds", 5, "alternating rounds")
	seconds  = flag.Int("seconds", 4, "length of a measurement")
	conns    = flag.Int("connections", 16, "connections of the closed loop")
	parted   = flag.Bool("parts", false, "measure what each part of the edge costs, in place of the rest")
	others   = flag.String("filters", "", "folders with other builds of the filters, separated by commas, to compare the edge's with, in place of the rest")
	counting = flag.Int("count", 0, "count instructions under Valgrind over so many requests, in place of the rest; with -parts, without each part of the configuration; with -filters, with each of those")
	only     = flag.String("only", "", "with -count, only what has this in its name; with -parts, only the parts whose names have it, and the whole")
	guarding = flag.Bool("guard", false, "count instructions, and fail if they are more than those recorded, in place of the rest")
	record   = flag.Bool("record", false, "with -guard, record what was counted")
	turn     = flag.Duration("turn", 300*time.Millisecond, "length of a measurement for -parts and -filters")
	openRate = flag.Int("rate", 4000, "requests a second of the open loop")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/edge:", err)
		os.Exit(1)
	}
}

func run() error {
	b, err := testbed.Start()
	if err != nil {
		return err
	}
	defer b.Close()
	switch {
	case *guarding:
		return guard(b)
	case *counting > 0:
		list := chosenWholes()
		if *parted {
			list = withoutParts()
		} else if *others != "" {
			if list, err = withFilters(*others); err != nil {
				return err
			}
		}
		_, err := count(b, *counting, list)
		return err
	case *parted:
		return explain(b)
	case *others != "":
		return compare(b, *others)
	}
	subjects := []*testbed.Subject{b.Plain, b.Edge}
	for range *rounds {
		for _, s := range subjects {
			if err := measure(s); err != nil {
				return err
			}
		}
		slices.Reverse(subjects)
	}
	report(b.Plain, b.Edge)
	return nil
}

// measure runs the closed loop and then the open one.
func measure(s *testbed.Subject) error {
	d := time.Duration(*seconds) * time.Second
	if err := s.Measure(*conns, d); err != nil {
		return err
	}
	r, err := load.Open(s.Request, *conns, *openRate, d)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	s.P50, s.P99 = append(s.P50, load.Quantile(r.Latencies, 0.5)), append(s.P99, load.Quantile(r.Latencies, 0.99))
	return nil
}

func report(plain, edge *testbed.Subject) {
	fmt.Printf("| proxying a 1 KiB GET, one core | requests/s | CPU µs/request | p50 at %d/s | p99 at %d/s |\n|---|---|---|---|---|\n", *openRate, *openRate)
	for _, s := range []*testbed.Subject{plain, edge} {
		fmt.Printf("| %s | %.0f | %.1f | %v | %v |\n", s.Name, load.Median(s.Rate), load.Median(s.CPU), round(load.Median(s.P50)), round(load.Median(s.P99)))
	}
	fmt.Printf("| ratio | %.2f | %+.1f | %+v | %+v |\n", load.Median(edge.Rate)/load.Median(plain.Rate), load.Median(edge.CPU)-load.Median(plain.CPU),
		round(load.Median(edge.P50)-load.Median(plain.P50)), round(load.Median(edge.P99)-load.Median(plain.P99)))
}

func round(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
