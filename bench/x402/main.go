// Command x402 measures what a payment costs: requests a second and latency of a
// route that is paid for, each time with a payment of its own, beside the same
// route called with a key. Payments settle in the ledger, so this is the edge,
// the hub and Postgres, with no chain behind them.
//
// The product is a server in this process that answers at once; payments are
// signed before a round begins. Rounds alternate, and the median of each figure
// is taken. Run it with `.sluice/bin/withpg go run ./bench/x402`, and SLUICE_BIN,
// SLUICE_ENVOY and SLUICE_WASM_DIR set, as `make bench` does.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"sluice.dev/sluice/bench/load"
)

// options are how much is measured.
type options struct {
	rounds, requests, connections, alone int
}

// figures are what the rounds of one way to call gave.
type figures struct {
	rate     []float64 // requests a second
	p50, p99 []time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "alternating rounds")
	flag.IntVar(&o.requests, "requests", 2000, "requests of a round's closed loop")
	flag.IntVar(&o.connections, "connections", 16, "connections of the closed loop")
	flag.IntVar(&o.alone, "alone", 300, "requests of a round, one after the other, for the latency")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench/x402:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	b, err := start()
	if err != nil {
		return err
	}
	defer b.stop()
	var keyed, paid figures
	for range o.rounds {
		headers := func(n int) []header {
			return slices.Repeat([]header{{"Authorization", "Bearer " + b.Dev["SLUICE_API_KEY"]}}, n)
		}
		if err := b.round(&keyed, o, headers); err != nil {
			return fmt.Errorf("with a key: %w", err)
		}
		if err := b.round(&paid, o, b.payments); err != nil {
			return fmt.Errorf("paid: %w", err)
		}
	}
	report(o, keyed, paid)
	return nil
}

// round measures one way to call; headers makes the credentials of n requests.
func (b *bed) round(f *figures, o options, headers func(n int) []header) error {
	_, latencies, err := b.load(headers(o.alone), 1)
	if err != nil {
		return err
	}
	f.p50, f.p99 = append(f.p50, load.Median(latencies)), append(f.p99, load.Quantile(latencies, 0.99))
	took, _, err := b.load(headers(o.requests), o.connections)
	f.rate = append(f.rate, float64(o.requests)/took.Seconds())
	return err
}

func report(o options, keyed, paid figures) {
	fmt.Printf("| POST, %d rounds | requests/s, %d connections | p50 alone | p99 alone |\n| --- | --- | --- | --- |\n", o.rounds, o.connections)
	row := func(name string, f figures) {
		fmt.Printf("| %s | %.0f | %v | %v |\n", name, load.Median(f.rate), micros(load.Median(f.p50)), micros(load.Median(f.p99)))
	}
	row("with a key", keyed)
	row("paid", paid)
	fmt.Printf("| added by verifying and settling | | %v | %v |\n", micros(load.Median(paid.p50)-load.Median(keyed.p50)), micros(load.Median(paid.p99)-load.Median(keyed.p99)))
}

func micros(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
