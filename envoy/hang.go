package envoy

import (
	"context"
	"slices"
	"syscall"
	"time"

	"sluice.dev/sluice/platform/process/child"
)

const (
	checkEvery   = time.Second / 2  // how often workers are checked
	replaceFirst = 5 * time.Second  // between the first replacement because of a hang and the second
	replaceMost  = 60 * time.Second // between any two
	replaceReset = 5 * time.Minute  // without a hang, after which the next is a first one again
	exitTimeout  = 3 * time.Second  // in which an Envoy must end that the next one has asked to
)

// checkWorkers checks whether a worker of Envoy hangs, which no filter can keep from
// happening and nothing ends: its connections get no answer, and neither does a
// part of the new ones. Another Envoy takes over then, as at an upgrade, from all
// its workers. An error means that Envoy has to be started anew.
func (e *Edge) checkWorkers(ctx context.Context) error {
	if !e.serving {
		return nil
	}
	misses := e.admin.megaMisses(ctx)
	if misses == nil {
		return nil
	}
	pid := e.proc.PID()
	found := e.workers.findHung(misses, func(worker string) (uint64, bool) { return countWaits(pid, worker) })
	for _, worker := range found {
		e.hangs.Add(1)
		e.cfg.Logger.Error("a worker of Envoy hangs in a request", "worker", worker, "workers", e.cfg.Concurrency, "pid", pid)
		if err := lowerPriority(pid, worker); err != nil {
			e.cfg.Logger.Warn("the worker that hangs keeps its CPU", "cause", err)
		}
	}
	if !e.workers.anyHung() || !e.replacements.allow(e.cfg.Now()) {
		return nil
	}
	epoch := e.epoch
	if err := e.handOver(ctx); err != nil {
		return err
	}
	if e.epoch == epoch && ctx.Err() == nil {
		return e.drainForRestart("a worker of it hangs")
	}
	return nil
}

// hangDetector finds the workers of one Envoy that hang.
type hangDetector struct {
	misses   map[string]int     // when it looked last
	suspects map[string]*worker // that stood still then
}

// worker is one that was late.
type worker struct {
	waits uint64 // for events, when it was found late
	hung  bool
}

// findHung returns the workers of which it is new that they hang: the watchdog has
// counted them late, and at the next look they have not waited for an event since.
// A worker that was only late, because of a slow request or a machine that stood
// still, is left alone. misses is what the watchdog has counted so far, waits how
// often a worker has waited for events; one that cannot be told hangs.
func (w *hangDetector) findHung(misses map[string]int, waits func(worker string) (uint64, bool)) (found []string) {
	for name, l := range w.suspects {
		switch now, ok := waits(name); {
		case ok && now != l.waits:
			delete(w.suspects, name)
		case !l.hung:
			l.hung = true
			found = append(found, name)
		}
	}
	for name, n := range misses {
		if n > w.misses[name] && w.suspects[name] == nil {
			if w.suspects == nil {
				w.suspects = map[string]*worker{}
			}
			now, _ := waits(name)
			w.suspects[name] = &worker{waits: now}
		}
	}
	w.misses = misses
	slices.Sort(found)
	return found
}

// anyHung reports whether a worker hangs.
func (w *hangDetector) anyHung() bool { return len(w.hungWorkers()) > 0 }

// hungWorkers names those that hang.
func (w *hangDetector) hungWorkers() (names []string) {
	for name, l := range w.suspects {
		if l.hung {
			names = append(names, name)
		}
	}
	return names
}

// replacementLimit bounds how often an Envoy is replaced because of a hang: whoever can cause
// one can cause the next, and each replacement cuts the requests that still run in
// the Envoy before.
type replacementLimit struct {
	last time.Time
	wait time.Duration
}

// allow reports whether Envoy may be replaced now, and counts it then.
func (p *replacementLimit) allow(now time.Time) bool {
	since := now.Sub(p.last)
	switch {
	case p.last.IsZero() || since >= replaceReset:
		p.wait = replaceFirst
	case since < p.wait:
		return false
	default:
		p.wait = min(2*p.wait, replaceMost)
	}
	p.last = now
	return true
}

// retired is an Envoy that another has taken over from.
type retired struct {
	proc  *child.Process
	hung  bool          // a worker of it hangs: it cannot end by itself
	bound time.Duration // after which the next asks it to end
}

// awaitExit sees to it that an Envoy ends that another has taken over from. It must be
// there when that one asks it to: an Envoy that finds nobody to ask aborts. So one
// in which a worker hangs is not killed as soon as the others have nothing to do.
func (e *Edge) awaitExit(r *retired) {
	late := time.NewTimer(r.bound + exitTimeout)
	defer late.Stop()
	select {
	case <-r.proc.Done():
	case <-late.C:
		e.cfg.Logger.Warn("the Envoy of before does not end: it is killed", "pid", r.proc.PID())
		_ = r.proc.SignalGroup(syscall.SIGKILL)
	}
}

// stopRetired stops the Envoy that finishes its requests, if there is one.
func (e *Edge) stopRetired() {
	if e.retired == nil {
		return
	}
	how := syscall.SIGTERM
	if e.retired.hung {
		how = syscall.SIGKILL
	}
	if err := e.retired.proc.Stop(how, killAfter); err != nil {
		e.cfg.Logger.Warn("the Envoy of before did not end in order", "cause", err)
	}
	e.retired = nil
}
