package main

import (
	"bytes"
	"io"
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
	c := config{seed: 1, length: 22 * time.Second, slow: true, out: &out, faults: []plan.Fault{
		{At: 1 * time.Second, Kind: plan.Kill, Target: "controlplane-1"},
		{At: 3 * time.Second, Kind: plan.Silence, Target: "edges>api-2", For: 2 * time.Second},
		{At: 5 * time.Second, Kind: plan.Kill, Target: "worker-2"},
		{At: 7 * time.Second, Kind: plan.CrashPostgres, Target: "postgres"},
		{At: 11 * time.Second, Kind: plan.KillEnvoy, Target: "edge-1"},
		{At: 12 * time.Second, Kind: plan.RotateCerts},
		{At: 13 * time.Second, Kind: plan.Cut, Target: "edge-2>controlplane-1", For: 3 * time.Second},
		{At: 14 * time.Second, Kind: plan.Slow, Target: "media>postgres", Amount: 100, For: 2 * time.Second},
		{At: 15 * time.Second, Kind: plan.Kill, Target: "runtime"},
		{At: 16 * time.Second, Kind: plan.Reset, Target: "worker>receiver"},
		{At: 17 * time.Second, Kind: plan.Kill, Target: "edge-3"},
	}}
	if err := run(t.Context(), c); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if n := strings.Count(out.String(), "\n"); n < len(c.faults)+10 || !strings.Contains(out.String(), "PROMISE") {
		t.Errorf("%d lines:\n%s", n, &out)
	}
}

func TestARunSaysWhatItNeeds(t *testing.T) {
	t.Setenv("SLUICE_BIN", "")
	if err := run(t.Context(), config{out: io.Discard}); err == nil {
		t.Error("it runs without a binary")
	}
}
