package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Proc is a process of this machine, as /proc has it.
type Proc struct {
	PID, Parent int
	Name        string        // at most 15 bytes
	Args        []string      // the program first; none of a process that has ended
	CPU         time.Duration // user and system time, that of its ended children included
}

// Processes are those of this machine by their ids.
func Processes() map[int]Proc {
	all := map[int]Proc{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		if p, ok := readStat(file); ok {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			p.Args = strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
			all[p.PID] = p
		}
	}
	return all
}

// MainThread is the first thread of a process alone; false: it has ended.
func MainThread(pid int) (Proc, bool) {
	return readStat(fmt.Sprintf("/proc/%[1]d/task/%[1]d/stat", pid))
}

// readStat reads the stat file of a process or thread; false: it has ended.
func readStat(file string) (p Proc, ok bool) {
	text, err := os.ReadFile(file)
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if err != nil || open < 0 || end < open {
		return p, false
	}
	fields := strings.Fields(string(text[end+1:]))
	number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n }
	p = Proc{Parent: number(1), Name: string(text[open+1 : end])}
	p.PID, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
	p.CPU = time.Duration(number(11)+number(12)+number(13)+number(14)) * 10 * time.Millisecond
	return p, true
}

// Children are the processes that have pid as their parent.
func Children(pid int) (list []Proc) {
	for _, p := range Processes() {
		if p.Parent == pid {
			list = append(list, p)
		}
	}
	return list
}

// Below finds a process below pid, at any depth.
func Below(pid int, what string, is func(Proc) bool) (Proc, error) {
	all := Processes()
	for _, p := range all {
		if !is(p) {
			continue
		}
		for up := p.Parent; up > 1; up = all[up].Parent {
			if up == pid {
				return p, nil
			}
		}
	}
	return Proc{}, fmt.Errorf("process %d has no child %s", pid, what)
}

// Environment is what a process was started with; empty if it has ended.
func Environment(pid int) map[string]string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	env := map[string]string{}
	for kv := range strings.SplitSeq(string(text), "\x00") {
		if name, value, ok := strings.Cut(kv, "="); ok {
			env[name] = value
		}
	}
	return env
}

// Memory is how many bytes of memory a process holds, and has held at most.
func Memory(pid int) (now, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		bytes := func() int64 { n, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64); return n << 10 }
		switch name {
		case "VmRSS":
			now = bytes()
		case "VmHWM":
			peak = bytes()
		}
	}
	return now, peak, nil
}
