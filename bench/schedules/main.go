// Command schedules measures the scheduling service: 10,000 of 100,000 active
// schedules due in one second, and the lateness of a steady stream of due runs.
//
//	go run ./bench/schedules [-active 100000] [-due 10000] [-workers 1] [-rate 100] [-seconds 20] [burst] [calls] [steady]
//
// Everything runs on this machine: PostgreSQL with durable writes, the workers
// (in this process) and, where schedules call a webhook, the receiver. Burst
// emits an event for each run; calls makes an HTTP call for each.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
)

type options struct {
	active, due, workers, rate, seconds int
}

func main() {
	var o options
	flag.IntVar(&o.active, "active", 100_000, "active schedules")
	flag.IntVar(&o.due, "due", 10_000, "how many of them are due in one second")
	flag.IntVar(&o.workers, "workers", 1, "workers, in this process")
	flag.IntVar(&o.rate, "rate", 100, "due runs a second of the steady row")
	flag.IntVar(&o.seconds, "seconds", 20, "length of the steady row")
	flag.Parse()
	if err := bench(context.Background(), o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench/schedules:", err)
		os.Exit(1)
	}
}

// bench measures the named rows, each on a server of its own; none named: all.
func bench(ctx context.Context, o options, names []string) error {
	rows := []struct {
		name string
		f    func(context.Context, *stack, options) error
	}{
		{"burst", func(ctx context.Context, s *stack, o options) error { return burst(ctx, s, o, "burst", "") }},
		{"calls", func(ctx context.Context, s *stack, o options) error { return burst(ctx, s, o, "calls", s.receiver.URL) }},
		{"steady", steady},
	}
	for _, row := range rows {
		if len(names) > 0 && !slices.Contains(names, row.name) {
			continue
		}
		if err := measure(ctx, o, row.f); err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
	}
	return nil
}

func measure(ctx context.Context, o options, f func(context.Context, *stack, options) error) error {
	s, err := newStack(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	return f(ctx, s, o)
}
