package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/e2e/harness"
)

// spent returns the CPU time of all that this run has started, and of the database
// that was started for it, by what they are.
func spent() map[string]time.Duration {
	all := harness.Processes()
	root := os.Getpid()
	for p := all[root]; p.Parent > 1; p = all[p.Parent] {
		if all[p.Parent].Name == "withpg" {
			root = p.Parent
		}
	}
	sum := map[string]time.Duration{}
	for _, p := range all {
		for at := p; at.PID > 1; at = all[at.Parent] {
			if at.PID == root {
				sum[part(p)] += p.CPU
				if main, ok := harness.MainThread(p.PID); ok && part(p) == envoys {
					sum[envoys+", their main threads alone"] += main.CPU
				}
				break
			}
		}
	}
	return sum
}

const envoys = "Envoys"

// part says what a process is.
func part(p harness.Proc) string {
	switch {
	case p.PID == os.Getpid():
		return "this program"
	case strings.HasPrefix(p.Name, "envoy"):
		return envoys
	case p.Name == "sluice" && len(p.Args) > 1:
		return "sluice " + p.Args[1]
	}
	return p.Name
}

// shares prints what each part spent since before, for each of n changes.
func shares(before map[string]time.Duration, n int) {
	fmt.Printf("\n| CPU time of one change, of %d | ms |\n| --- | --- |\n", n)
	now := spent()
	for _, part := range slices.Sorted(maps.Keys(now)) {
		if ms := float64((now[part] - before[part]).Microseconds()) / 1000 / float64(n); ms >= 0.1 {
			fmt.Printf("| %s | %.1f |\n", part, ms)
		}
	}
}
