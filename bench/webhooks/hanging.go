package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sluice.dev/sluice/bench/load"
)

// hanging compares the time from publishing to arrival at 900 healthy
// endpoints: first alone, then beside 100 more that never answer. There are 100
// accounts, and each event is of one account: nine healthy deliveries and, in
// the second half, one that hangs.
func hanging(ctx context.Context, s *stack, r *receiver, o options) error {
	accounts, err := s.addAccounts(ctx, 100)
	if err != nil {
		return err
	}
	for i, a := range accounts {
		if err := s.subscribe(ctx, a, 9, func(k int) string { return fmt.Sprintf("%s/fast/%d-%d", r.URL, i, k) }); err != nil {
			return err
		}
	}
	alone, err := s.half(ctx, r, "alone", accounts, o)
	if err != nil {
		return err
	}
	for i, a := range accounts {
		if err := s.subscribe(ctx, a, 1, func(int) string { return fmt.Sprintf("%s/hang/%d", r.URL, i) }); err != nil {
			return err
		}
	}
	beside, err := s.half(ctx, r, "beside", accounts, o)
	if err == nil {
		fmt.Printf("hanging: p99 of healthy endpoints %.2f × its value without hanging ones\n", float64(beside)/float64(alone))
	}
	return err
}

// half publishes at a steady rate and returns the 99th percentile.
func (s *stack) half(ctx context.Context, r *receiver, name string, accounts []string, o options) (time.Duration, error) {
	var mu sync.Mutex
	published := map[string]time.Time{}
	n := o.rate * o.seconds
	errs := make(chan error, n)
	tick := time.NewTicker(time.Second / time.Duration(o.rate))
	defer tick.Stop()
	for i := range n {
		<-tick.C
		id := fmt.Sprintf("evt_%s_%d", name, i)
		mu.Lock()
		published[id] = time.Now()
		mu.Unlock()
		go func() { errs <- s.publish(ctx, accounts[i%len(accounts)], id) }()
	}
	for range n {
		if err := <-errs; err != nil {
			return 0, err
		}
	}
	if err := r.wait(ctx, 9*n); err != nil {
		return 0, err
	}
	all := r.latencies(published)
	fmt.Printf("hanging, %s: %d deliveries to 900 healthy endpoints, %d a second: p50 %.1f ms, p99 %.1f ms, most %.1f ms\n", name, len(all), 9*o.rate,
		load.Quantile(all, 0.5).Seconds()*1000, load.Quantile(all, 0.99).Seconds()*1000, load.Quantile(all, 1).Seconds()*1000)
	return load.Quantile(all, 0.99), nil
}
