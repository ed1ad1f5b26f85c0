package fleet

import (
	"errors"
	"slices"
	"strings"
	"syscall"

	"sluice.dev/sluice/bench/chaos/audit"
	"sluice.dev/sluice/bench/chaos/clock"
	"sluice.dev/sluice/bench/chaos/plan"
	"sluice.dev/sluice/e2e/harness"
)

// clocked says whether clocks can be moved on this machine; the error says why not.
func (f *Fleet) clocked() error { return f.move("postgres", 0) }

// members are the processes that share the clock of a part: those of its machine,
// if it had one of its own.
func (f *Fleet) members(name string) []int {
	pid := 0
	if name == "postgres" {
		pid = f.database.pid()
	} else if p := f.processes[name].current(); p != nil {
		pid = p.PID()
	}
	if pid == 0 {
		return nil
	}
	return family(pid)
}

// family is a process and its children.
func family(pid int) []int {
	all := []int{pid}
	for _, p := range harness.Children(pid) {
		all = append(all, p.PID)
	}
	return all
}

// move sets the clock of a part so many seconds from the true time. A process
// that is started in the meantime by its parent has the parent's clock if it is
// forked (PostgreSQL), and the true one if it is executed.
func (f *Fleet) move(name string, seconds int64) (err error) {
	f.still.Lock()
	defer f.still.Unlock()
	moved := map[int]bool{}
	for { // until no process has come that the first one forked before its own clock moved
		next := slices.DeleteFunc(f.members(name), func(pid int) bool { return moved[pid] })
		if len(next) == 0 {
			return err
		}
		for _, pid := range next {
			moved[pid] = true
			err = errors.Join(err, clock.Shift(pid, seconds))
		}
	}
}

// jump moves the clock of a part until the returned function is called.
func (f *Fleet) jump(name string, seconds int) (back func() error, err error) {
	return func() error { return f.move(name, 0) }, f.move(name, int64(seconds))
}

// freeze stops a process until the returned function is called. Nobody moves its
// clock at the very moment.
func (f *Fleet) freeze(p *process) (thaw func() error, err error) {
	frozen := p.current()
	send := func(sig syscall.Signal) error {
		f.still.Lock()
		defer f.still.Unlock()
		return frozen.Signal(sig)
	}
	return func() error { return send(syscall.SIGCONT) }, send(syscall.SIGSTOP)
}

// skewed notes when a clock was wrong.
func (f *Fleet) skewed(fault plan.Fault, s audit.Span) {
	if fault.Kind == plan.JumpClock {
		f.skews = append(f.skews, audit.Skew{Part: fault.Target, Seconds: fault.Amount, Span: s})
	}
}

// Skews are the times in which clocks were wrong.
func (f *Fleet) Skews() []audit.Skew {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.skews)
}

// deaf says which edge cannot hear of revocations while something is broken; empty: none can.
func deaf(fault plan.Fault) (edge string, is bool) {
	from, to, wire := strings.Cut(fault.Target, ">")
	switch {
	case fault.Kind == plan.JumpClock:
		return "", false
	case strings.HasPrefix(from, "edge-") && (!wire || strings.HasPrefix(to, "controlplane-")):
		return from, true
	case from == "postgres", strings.HasPrefix(from, "controlplane-") && (!wire || to == "postgres"):
		return "", true
	}
	return "", false
}
