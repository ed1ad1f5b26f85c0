package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// process is one of the machine's, as /proc has it.
type process struct {
	pid, parent int
	name        string
	cpu         time.Duration // user and system time, its ended children's included
}

// processes lists those that can be read.
func processes() map[int]process {
	all := map[int]process{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		if p, ok := read(file); ok {
			all[p.pid] = p
		}
	}
	return all
}

// read reads the stat file of a process or thread; false: it has ended.
func read(file string) (p process, ok bool) {
	text, err := os.ReadFile(file)
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if err != nil || open < 0 || end < open {
		return p, false
	}
	fields := strings.Fields(string(text[end+1:]))
	number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n }
	p = process{parent: number(1), name: string(text[open+1 : end])}
	p.pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
	p.cpu = time.Duration(number(11)+number(12)+number(13)+number(14)) * 10 * time.Millisecond
	return p, true
}

// spent returns the CPU time of all that this run has started, and of the database
// that was started for it, by what they are.
func spent() map[string]time.Duration {
	all := processes()
	root := os.Getpid()
	for p := all[root]; p.parent > 1; p = all[p.parent] {
		if all[p.parent].name == "withpg" {
			root = p.parent
		}
	}
	sum := map[string]time.Duration{}
	for _, p := range all {
		for at := p; at.pid > 1; at = all[at.parent] {
			if at.pid == root {
				sum[p.part()] += p.cpu
				if main, ok := read(fmt.Sprintf("/proc/%[1]d/task/%[1]d/stat", p.pid)); ok && p.part() == envoys {
					sum[envoys+", their main threads alone"] += main.cpu
				}
				break
			}
		}
	}
	return sum
}

const envoys = "Envoys"

// part says what a process is.
func (p process) part() string {
	switch {
	case p.pid == os.Getpid():
		return "this program"
	case strings.HasPrefix(p.name, "envoy"):
		return envoys
	case p.name == "sluice":
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		if args := strings.Split(string(line), "\x00"); len(args) > 1 {
			return "sluice " + args[1]
		}
	}
	return p.name
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
