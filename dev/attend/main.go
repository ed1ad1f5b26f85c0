// Command attend runs a long-lived command for make.
//
//	attend CMD ARGS…
//
// A Ctrl-C at the terminal reaches every process there. But a SIGINT to make
// alone (kill -INT, or a script that started it) is not passed on: make then
// waits for ever for the command to end, and a make that is killed leaves the
// command behind. attend notices both and asks CMD to end. The exit status is
// that of CMD.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/dev/foreground"
)

// lookEvery is how often the parent is looked at: it sends no sign by itself.
const lookEvery = 500 * time.Millisecond

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "attend:", err)
	}
	os.Exit(status)
}

func run(argv []string) (int, error) {
	if len(argv) == 0 {
		return 2, errors.New("usage: attend CMD ARGS…")
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	parent := os.Getppid()
	go watch(parent, catchesInterrupt(parentStatus(parent)), ticker.C, signals)
	return foreground.Run(argv, os.Environ(), signals)
}

// watch sends one SIGINT when the parent has died, or has been interrupted: make
// catches SIGINT until it receives it. A parent that did not catch it at first,
// before the command was started, is only watched for its death.
func watch(parent int, caught bool, ticks <-chan time.Time, signals chan<- os.Signal) {
	for range ticks {
		status := parentStatus(parent)
		if os.Getppid() != parent || (caught && !catchesInterrupt(status)) {
			signals <- syscall.SIGINT
			return
		}
	}
}

func parentStatus(pid int) string {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	return string(text)
}

// catchesInterrupt reads the mask of caught signals from a /proc/PID/status.
func catchesInterrupt(status string) bool {
	for _, line := range strings.Split(status, "\n") {
		if mask, ok := strings.CutPrefix(line, "SigCgt:"); ok {
			bits, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && bits&(1<<(uint(syscall.SIGINT)-1)) != 0
		}
	}
	return false
}
