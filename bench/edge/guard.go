package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/bench/testbed"
	"sluice.dev/sluice/envoy"
)

// recordFile is where the counts stand that guard holds others to, in the checkout.
var recordFile = filepath.Join("bench", "edge", "counts.json")

// guardRequests is over how many requests guard counts.
const guardRequests = 300

// allowed is how many hundredths more than was recorded a count may be. Two counts of one
// build differ by a third of one.
const allowed = 2

// counts is what was counted once, and how. Instructions of one Envoy under one Valgrind
// can be compared; others cannot.
type counts struct {
	How          string           `json:"how"`
	Envoy        string           `json:"envoy"`
	Valgrind     string           `json:"valgrind"`
	Requests     int              `json:"requests"`
	Instructions map[string]int64 `json:"instructions"` // of a request, by what was counted
}

// guard counts what a request takes, and compares that with what was recorded, or records it.
func guard(b *testbed.Bed) error {
	version, err := valgrindVersion()
	if err != nil {
		return err
	}
	now := counts{
		How:   "instructions of a request in user space, under Valgrind: make bench-guard RECORD=1",
		Envoy: envoy.Version(), Valgrind: version, Requests: guardRequests,
	}
	if now.Instructions, err = count(b, guardRequests, guardedWholes()); err != nil {
		return err
	}
	if *record {
		return now.write(recordFile)
	}
	was, err := readCounts(recordFile)
	if err != nil {
		return err
	}
	return compareCounts(was, now)
}

// guardedWholes are those of wholes that are recorded.
func guardedWholes() []toCount { return wholes[:3] }

func valgrindVersion() (string, error) {
	out, err := exec.Command("valgrind", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("bench-guard needs valgrind: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func readCounts(file string) (c counts, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return c, fmt.Errorf("nothing is recorded; `make bench-guard RECORD=1` does it: %w", err)
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

func (c counts) write(file string) error {
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(raw, '\n'), 0o644)
}

// errMore says that a request takes more instructions than was recorded.
var errMore = errors.New("a request takes more instructions than was recorded")

// compareCounts prints what was recorded beside what was counted now. The error is errMore
// when something takes over allowed hundredths more, and another one when the two cannot be
// compared.
func compareCounts(was, now counts) error {
	if was.Envoy != now.Envoy || was.Valgrind != now.Valgrind || was.Requests != now.Requests {
		return fmt.Errorf("recorded with Envoy %s and %s over %d requests, counted with Envoy %s and %s over %d: record anew, by `make bench-guard RECORD=1` on the commit before yours",
			was.Envoy, was.Valgrind, was.Requests, now.Envoy, now.Valgrind, now.Requests)
	}
	fmt.Println("\n| instructions a request | recorded | now | |\n|---|---|---|---|")
	var problems []error
	for _, s := range guardedWholes() {
		before, recorded := was.Instructions[s.name]
		n, counted := now.Instructions[s.name]
		if !recorded || !counted || before <= 0 {
			return fmt.Errorf("%q is not recorded, or was not counted: record anew, by `make bench-guard RECORD=1`", s.name)
		}
		fmt.Printf("| %s | %d | %d | %+.1f %% |\n", s.name, before, n, 100*float64(n-before)/float64(before))
		if 100*(n-before) > allowed*before {
			problems = append(problems, fmt.Errorf("%w: %s: %d, recorded %d, at most %d %% more", errMore, s.name, n, before, allowed))
		}
	}
	return errors.Join(problems...)
}
