// Command fairness measures what one tenant can do to another. A neighbour has a few
// schedules, deliveries, POSTs with an Idempotency-Key and sign-ins a second: first
// alone, then beside a tenant that asks for a hundred times as much, with receivers
// that never answer. It prints a table.
//
//	go run ./bench/fairness [-for 2m] [-rate 2] [-times 100] [-plan enterprise] [-without sign-in]
//
// Everything runs on this machine: `sluice up` with its PostgreSQL, Envoy, worker and
// product, and both tenants.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

type options struct {
	length      time.Duration
	rate, times int
	without     string
	plan        string
}

func main() {
	var o options
	flag.DurationVar(&o.length, "for", 2*time.Minute, "length of each phase")
	flag.IntVar(&o.rate, "rate", 2, "of the neighbour: each a second")
	flag.IntVar(&o.times, "times", 100, "how many times as much the other tenant asks for")
	flag.StringVar(&o.without, "without", "", "attacks to leave out, by their names in the table, joined by commas")
	flag.StringVar(&o.plan, "plan", "enterprise", "the other tenant's: the largest that is sold, or local, which has no limit of requests")
	as := flag.Bool("tenant", false, "be the hostile tenant (the benchmark starts itself so)")
	flag.Parse()
	if *as {
		if err := beTenant(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench/fairness:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench/fairness:", err)
		os.Exit(1)
	}
}

// warmUp is how long the hostile tenant attacks before anything is measured.
const warmUp = 8 * time.Second

func run(ctx context.Context, o options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b, err := start(ctx)
	if err != nil {
		return err
	}
	defer b.stop()
	if err := b.prepare(ctx); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if _, err := b.measure(ctx, "warm", options{length: 3 * time.Second, rate: o.rate}); err != nil {
		return err
	}
	quiet, err := b.measure(ctx, "quiet", o)
	if err != nil {
		return fmt.Errorf("quiet: %w", err)
	}
	key, account, err := b.tenant(ctx, o.plan)
	if err != nil {
		return err
	}
	t, err := startTenant(ctx, orders{Gateway: b.Dev["SLUICE_GATEWAY_URL"], Key: key, Rate: o.rate * o.times, Subscriptions: o.times, Without: strings.Split(o.without, ",")})
	if err != nil {
		return fmt.Errorf("the hostile tenant: %w", err)
	}
	if err := b.flood(ctx, account, t.Silent, o); err != nil {
		return err
	}
	if err := t.attack(); err != nil {
		return err
	}
	time.Sleep(warmUp) // nothing is measured
	beside, err := b.measure(ctx, "beside", o)
	if err != nil {
		return fmt.Errorf("beside: %w", err)
	}
	attacked, err := t.stop()
	if err != nil {
		return fmt.Errorf("the hostile tenant: %w", err)
	}
	return report(ctx, b, o, quiet, beside, attacked, account)
}
