// Command propagation measures how soon three edges know of a change, with a
// million keys and two thousand routes in force: new keys, revoked keys, routes;
// and how soon an edge that starts with nothing, or with its saved state, serves.
//
// Run it with `.sluice/bin/withpg go run ./bench/propagation`, and SLUICE_BIN,
// SLUICE_ENVOY and SLUICE_WASM_DIR set, as `make bench` does.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"sluice.dev/sluice/bench/load"
)

func main() {
	keys := flag.Int("keys", 1_000_000, "keys in force")
	routes := flag.Int("routes", 2000, "routes in force, over one product for each 40")
	rounds := flag.Int("rounds", 200, "keys made and revoked")
	changes := flag.Int("changes", 100, "routes changed")
	flag.Parse()
	if err := run(context.Background(), *keys, *routes, *rounds, *changes); err != nil {
		fmt.Fprintln(os.Stderr, "propagation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, keys, routes, rounds, changes int) error {
	b, err := start(ctx, keys)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.settle(ctx, routes); err != nil {
		return err
	}
	fmt.Printf("%d keys, %d routes, %d edges\n\n| what | p50 | p99 | max |\n| --- | --- | --- | --- |\n", keys, routes, len(b.edges))
	if err := b.starts(); err != nil {
		return err
	}
	made, revoked, err := b.keys(ctx, rounds)
	if err != nil {
		return err
	}
	row("a new key is accepted at all edges", made)
	row("a revoked key is refused at all edges", revoked)
	return b.routes(ctx, changes)
}

// row prints the spread of d.
func row(what string, d []time.Duration) {
	at := func(q float64) time.Duration { return load.Quantile(d, q).Round(100 * time.Microsecond) }
	fmt.Printf("| %s, of %d | %v | %v | %v |\n", what, len(d), at(0.5), at(0.99), at(1))
}
