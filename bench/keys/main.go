// Command keys measures what the number of API keys costs an edge: how long a cold
// Envoy takes to have them, how much memory it needs, and what a look-up costs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"sluice.dev/sluice/bench/load"
	"sluice.dev/sluice/bench/testbed"
	"sluice.dev/sluice/e2e/harness"
)

var (
	rounds = flag.Int("rounds", 7, "alternating rounds")
	turn   = flag.Duration("turn", 500*time.Millisecond, "length of a measurement")
	conns  = flag.Int("connections", 16, "connections")
	most   = flag.Int("keys", 1_000_000, "the largest number of keys")
)

// used is how many keys make the requests, in turn: more than an edge remembers,
// so that each request is a look-up.
const used = 1000

// stage is an Envoy that has loaded a number of keys.
type stage struct {
	keys   int
	took   time.Duration    // from its start until it knew the last of them
	memory int64            // bytes, resident
	many   *testbed.Subject // asked with many keys
}

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench/keys:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	b, err := testbed.Start()
	if err != nil {
		return err
	}
	defer b.Close()
	s, err := openStore(ctx, b)
	if err != nil {
		return err
	}
	defer s.close()
	var stages []stage
	var subjects []*testbed.Subject
	for _, n := range []int{used, *most / 10, *most} {
		if err := s.grow(ctx, n); err != nil {
			return err
		}
		st, err := coldStart(b, s)
		if err != nil {
			return fmt.Errorf("%d keys: %w", n, err)
		}
		stages, subjects = append(stages, st), append(subjects, st.many)
	}
	if err := testbed.Alternate(*rounds, *conns, *turn, subjects); err != nil {
		return err
	}
	report(stages)
	return nil
}

// coldStart starts an Envoy that has the edge's configuration and no keys, waits until
// it knows them all, and cuts it off from the feed.
func coldStart(b *testbed.Bed, s *store) (stage, error) {
	c, err := b.Config()
	if err != nil {
		return stage{}, err
	}
	to, err := newLane(c)
	if err != nil {
		return stage{}, err
	}
	defer to.close()
	began := time.Now()
	many, err := b.Static(fmt.Sprint(s.size), c, testbed.Programs())
	if err != nil {
		return stage{}, err
	}
	many.Request = b.Keyed(many.Request.Addr, s.text(s.size-1))
	if err := many.Ready(); err != nil {
		return stage{}, err
	}
	st := stage{keys: s.size, took: time.Since(began), many: many}
	many.Request.Keys = s.sample()
	if err := many.Measure(*conns, *turn); err != nil {
		return stage{}, err
	}
	many.CPU, many.Rate = nil, nil
	st.memory, _, err = harness.Memory(many.PID)
	return st, err
}

func report(stages []stage) {
	fmt.Printf("| keys | a cold Envoy knows them after | its memory | CPU µs a request, each with another key |\n| --- | --- | --- | --- |\n")
	for _, s := range stages {
		fmt.Printf("| %d | %v | %d MB | %.1f (%+.1f) |\n", s.keys, s.took.Round(10*time.Millisecond), s.memory>>20,
			load.Median(s.many.CPU), load.Median(testbed.Less(s.many.CPU, stages[0].many.CPU)))
	}
}
