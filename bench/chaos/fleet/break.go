package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"sluice.dev/sluice/bench/chaos/audit"
	"sluice.dev/sluice/bench/chaos/plan"
	"sluice.dev/sluice/e2e/harness"
)

// Break does what f says, keeps it so for its time, mends it, and notes when.
// Faults may overlap. Configuration flaps are the caller's.
func (f *Fleet) Break(ctx context.Context, fault plan.Fault) error {
	if fault.Kind == plan.FailOver {
		return f.failOver(ctx, fault)
	}
	from := time.Now()
	mend, err := f.harm(ctx, fault)
	if err != nil {
		return fmt.Errorf("%s %s: %w", fault.Kind, fault.Target, err)
	}
	if mend != nil {
		select {
		case <-time.After(fault.For):
		case <-ctx.Done():
		}
		err = mend()
	}
	f.note(fault, audit.Span{From: from, To: time.Now()})
	return err
}

// harm breaks the target and returns what mends it; nil: it mends itself.
func (f *Fleet) harm(ctx context.Context, fault plan.Fault) (mend func() error, err error) {
	switch p := f.processes[fault.Target]; fault.Kind {
	case plan.Kill:
		return nil, p.signal(syscall.SIGKILL)
	case plan.KillEnvoy:
		for _, envoy := range harness.Children(p.current().PID()) {
			err = errors.Join(err, syscall.Kill(envoy.PID, syscall.SIGKILL))
		}
		return nil, err
	case plan.Freeze:
		return f.freeze(p)
	case plan.RestartPostgres, plan.CrashPostgres:
		return nil, f.database.restart(ctx, fault.Kind == plan.CrashPostgres)
	case plan.Cut:
		return f.wires.cut(fault.Target)
	case plan.Slow:
		return f.wires.poison(fault.Target, "latency", map[string]any{"latency": fault.Amount, "jitter": fault.Amount / 2})
	case plan.Narrow:
		return f.wires.poison(fault.Target, "bandwidth", map[string]any{"rate": fault.Amount})
	case plan.Silence:
		return f.wires.poison(fault.Target, "timeout", map[string]any{"timeout": 0})
	case plan.Reset:
		heal, err := f.wires.poison(fault.Target, "reset_peer", map[string]any{"timeout": 0})
		if err != nil {
			return nil, err
		}
		time.Sleep(300 * time.Millisecond) // for what is sent meanwhile
		return nil, heal()
	case plan.RotateCerts:
		return nil, f.Certificates()
	case plan.FillDisk:
		return f.fill(fault.Target)
	case plan.JumpClock:
		return f.jump(fault.Target, fault.Amount)
	}
	return nil, fmt.Errorf("nobody knows how to do that")
}

// Certificates makes or renews all certificates under the same CA.
func (f *Fleet) Certificates() error {
	args := []string{"certs", f.certs()}
	for _, e := range f.Edges {
		args = append(args, "--edge", e.Name)
	}
	return harness.Run(f.shared, args...)
}

// Struck is what was broken so far, each thing once it was mended.
func (f *Fleet) Struck() []audit.Struck {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.struck)
}

// Note keeps that something was broken which is the caller's to break.
func (f *Fleet) Note(fault plan.Fault, from, to time.Time) {
	f.note(fault, audit.Span{From: from, To: to})
}

// note keeps what was broken when, for the accountant.
func (f *Fleet) note(fault plan.Fault, s audit.Span) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.struck = append(f.struck, audit.Struck{Kind: string(fault.Kind), Target: fault.Target, Span: s})
	if fault.Kind == plan.Kill || fault.Kind == plan.KillEnvoy || fault.Kind == plan.Freeze {
		f.kills[fault.Target] = append(f.kills[fault.Target], s)
	}
	f.skewed(fault, s)
	if edge, is := deaf(fault); is {
		f.outages = append(f.outages, audit.Outage{Edge: edge, Span: s})
	}
}

// Outages are the times in which edges could not hear of revocations.
func (f *Fleet) Outages() []audit.Outage {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.outages)
}

// Kills are the times at which a process was killed.
func (f *Fleet) Kills(name string) (at []time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.kills[name] {
		at = append(at, s.From)
	}
	return at
}

// diskSize is that of the disk which can be filled, in bytes.
const diskSize = "67108864"

// makeDisk gives the last edge a disk of its own.
func (f *Fleet) makeDisk() error {
	dir := f.disk(f.Edges[edges-1].Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=700,size="+diskSize); err != nil {
		return fmt.Errorf("mount a small disk for %s: %w", f.Edges[edges-1].Name, err)
	}
	return nil
}

// fill leaves not one free byte on an edge's disk.
func (f *Fleet) fill(edge string) (free func() error, err error) {
	file, err := os.CreateTemp(f.disk(edge), "ballast-")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	block := make([]byte, 1<<20)
	for n := len(block); n > 0; {
		if _, err := file.Write(block[:n]); errors.Is(err, syscall.ENOSPC) {
			n /= 2
		} else if err != nil {
			return nil, err
		}
	}
	return func() error { return os.Remove(file.Name()) }, nil
}

// freeDisk takes the disk away again.
func (f *Fleet) freeDisk() error {
	if !f.Disk || len(f.Edges) < edges {
		return nil
	}
	return syscall.Unmount(f.disk(f.Edges[edges-1].Name), syscall.MNT_DETACH)
}
