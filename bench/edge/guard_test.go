package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/envoy"
)

func recorded() counts {
	return counts{Envoy: "1", Valgrind: "valgrind-3", Requests: 300, Instructions: map[string]int64{plainName: 100_000, configName: 150_000, edgeName: 200_000}}
}

func TestCompareCounts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(now *counts)
		more   string // what takes more; empty: nothing does
		other  bool   // the two cannot be compared
	}{
		"the same":                {func(*counts) {}, "", false},
		"less":                    {func(now *counts) { now.Instructions[edgeName] = 150_000 }, "", false},
		"2 % more":                {func(now *counts) { now.Instructions[edgeName] = 204_000 }, "", false},
		"a little over 2 %":       {func(now *counts) { now.Instructions[edgeName] = 204_001 }, edgeName, false},
		"the configuration alone": {func(now *counts) { now.Instructions[configName] = 160_000 }, configName, false},
		"another Envoy":           {func(now *counts) { now.Envoy = "2" }, "", true},
		"another Valgrind":        {func(now *counts) { now.Valgrind = "valgrind-4" }, "", true},
		"other requests":          {func(now *counts) { now.Requests = 20 }, "", true},
		"one was not counted":     {func(now *counts) { delete(now.Instructions, plainName) }, "", true},
	} {
		now := recorded()
		now.Instructions = maps.Clone(now.Instructions)
		c.change(&now)
		err := compareCounts(recorded(), now)
		if more := errors.Is(err, errMore); more != (c.more != "") || more && !strings.Contains(err.Error(), ": "+c.more+": ") {
			t.Errorf("%s: %v", name, err)
		}
		if other := err != nil && !errors.Is(err, errMore); other != c.other {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is recorded in the checkout is whole, and of the Envoy that is pinned.
func TestRecordedCounts(t *testing.T) {
	c, err := readCounts(filepath.Base(recordFile))
	if err != nil {
		t.Fatal(err)
	}
	if c.Envoy != envoy.Version() || c.Requests != guardRequests || c.Valgrind == "" {
		t.Errorf("recorded with Envoy %s, %q, %d requests", c.Envoy, c.Valgrind, c.Requests)
	}
	if err := compareCounts(c, c); err != nil {
		t.Error(err)
	}
}

func TestCountsAreReadAsTheyWereWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts.json")
	if _, err := readCounts(file); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "RECORD=1") {
		t.Errorf("nothing recorded: %v", err)
	}
	if err := recorded().write(file); err != nil {
		t.Fatal(err)
	}
	got, err := readCounts(file)
	if err != nil || got.Valgrind != "valgrind-3" || !maps.Equal(got.Instructions, recorded().Instructions) {
		t.Errorf("%+v, %v", got, err)
	}
}
