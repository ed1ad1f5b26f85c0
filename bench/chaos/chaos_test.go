package main

import (
	"bytes"
	"io"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/bench/chaos/plan"
)

// The short form: clients go gently, while one thing of each kind goes wrong. `make
// chaos` is the long form.
func TestPlatformUnderFire(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := config{seed: 1, length: 22 * time.Second, slow: true, out: &out, siege: 4 * time.Second, pair: true, faults: []plan.Fault{
		{At: 1 * time.Second, Kind: plan.Kill, Target: "controlplane-1"},
		{At: 2 * time.Second, Kind: plan.JumpClock, Target: "edge-3", Amount: 30, For: 4 * time.Second},
		{At: 3 * time.Second, Kind: plan.Silence, Target: "edges>api-2", For: 2 * time.Second},
		{At: 5 * time.Second, Kind: plan.Kill, Target: "worker-2"},
		{At: 7 * time.Second, Kind: plan.CrashPostgres, Target: "postgres"},
		{At: 9 * time.Second, Kind: plan.JumpClock, Target: "worker-1", Amount: 300, For: 3 * time.Second},
		{At: 11 * time.Second, Kind: plan.KillEnvoy, Target: "edge-1"},
		{At: 12 * time.Second, Kind: plan.RotateCerts},
		{At: 13 * time.Second, Kind: plan.Cut, Target: "edge-2>controlplane-1", For: 3 * time.Second},
		{At: 14 * time.Second, Kind: plan.Slow, Target: "media>postgres", Amount: 100, For: 2 * time.Second},
		{At: 15 * time.Second, Kind: plan.Kill, Target: "runtime"},
		{At: 16 * time.Second, Kind: plan.Reset, Target: "worker>receiver"},
		{At: 17 * time.Second, Kind: plan.Kill, Target: "edge-3"},
		{At: 18 * time.Second, Kind: plan.FailOver, Target: "postgres"},
	}}
	if err := run(t.Context(), c); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if n := strings.Count(out.String(), "\n"); n < len(c.faults)+10 || !strings.Contains(out.String(), "PROMISE") {
		t.Errorf("%d lines:\n%s", n, &out)
	}
	if laid, written := wiresOf(out.String()), documented(t); !maps.Equal(laid, written) {
		t.Errorf("wires %v, and the manual has %v", laid, written)
	}
}

// wiresOf reads the wires that a run printed, with N for numbers.
func wiresOf(out string) map[string]bool {
	all := map[string]bool{}
	first, _, _ := strings.Cut(out, "\n")
	_, list, _ := strings.Cut(first, "wires: ")
	for name := range strings.SplitSeq(list, ", ") {
		all[regexp.MustCompile(`-[0-9]`).ReplaceAllString(name, "-N")] = true
	}
	return all
}

// documented are the wires in the table of the manual.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/chaos.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-zN -]+>[a-zN-]+)`").FindAllStringSubmatch(string(text), -1) {
		all[m[1]] = true
	}
	return all
}

func TestARunSaysWhatItNeeds(t *testing.T) {
	t.Setenv("SLUICE_BIN", "")
	if err := run(t.Context(), config{out: io.Discard}); err == nil {
		t.Error("it runs without a binary")
	}
}
