// Package plan decides what goes wrong and when, from a seed alone: the same seed
// gives the same faults at the same times on the same parts.
package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is a way to break something.
type Kind string

// The kinds. Those with a time last for it; the others are over at once, and
// what was broken comes back by itself.
const (
	Kill            Kind = "kill -9"
	KillEnvoy       Kind = "kill -9 Envoy of"
	Freeze          Kind = "freeze"       // SIGSTOP, and SIGCONT when it is over
	RestartPostgres Kind = "restart"      // without waiting for its clients
	CrashPostgres   Kind = "crash"        // kill -9 of the postmaster
	FailOver        Kind = "fail over"    // kill -9 of the primary; its standby is promoted
	Cut             Kind = "cut"          // nothing passes, nothing connects
	Slow            Kind = "slow"         // latency with jitter, both ways
	Narrow          Kind = "narrow"       // few bytes a second
	Reset           Kind = "reset"        // every connection is reset
	Silence         Kind = "silence"      // connections stay and nothing arrives
	FillDisk        Kind = "fill disk of" // no byte can be written
	JumpClock       Kind = "jump clock of"
	RotateCerts     Kind = "rotate certificates"
	FlapConfig      Kind = "flap configuration"
)

// Fault is one thing that goes wrong.
type Fault struct {
	At     time.Duration // since the start
	For    time.Duration // 0: it is over at once
	Kind   Kind
	Target string // a process, or a wire from>to; empty: the platform
	Amount int    // milliseconds of latency, bytes a second, or seconds of a clock
}

// String is a line of the plan.
func (f Fault) String() string {
	s := fmt.Sprintf("%6.1fs  %s %s", f.At.Seconds(), f.Kind, f.Target)
	switch f.Kind {
	case Slow:
		s += fmt.Sprintf(" by %d ms", f.Amount)
	case Narrow:
		s += fmt.Sprintf(" to %d kB/s", f.Amount)
	case JumpClock:
		s += fmt.Sprintf(" by %d s", f.Amount)
	}
	if f.For > 0 {
		s += fmt.Sprintf(" for %.1fs", f.For.Seconds())
	}
	return s
}

// Targets are the parts that can be broken.
type Targets struct {
	Processes []string // may be killed and frozen
	Edges     []string // of the processes, those with an Envoy
	Wires     []string // from>to
	Disks     []string // edges whose disk can be filled; empty: none
	Clocks    []string // parts whose clock can jump; empty: none
	Certs     bool     // certificates can be rotated
	Standby   bool     // PostgreSQL has one, which can take over
	Only      Kind     // nothing else; empty: everything
}

// Bounds of the pauses between faults and of how long one lasts.
const (
	minPause, maxPause = 2 * time.Second, 7 * time.Second
	minFor, maxFor     = time.Second, 10 * time.Second
)

// calm is how long nothing goes wrong at the start and at the end of a run, so that
// one sees the difference; at the end the platform has to get well first.
func calm(length time.Duration) (start, end time.Duration) {
	return max(minPause, min(8*time.Second, length/8)), max(minPause, min(22*time.Second, length/4))
}

// Make draws the faults of a run of length. They begin a little after its start
// and are over before its end. Each kind that is possible comes once before any
// comes again, so that a short run has most of them.
func Make(seed uint64, length time.Duration, t Targets) []Fault {
	r := rand.New(rand.NewPCG(seed, 1))
	var faults []Fault
	if len(kinds(t)) == 0 {
		return nil
	}
	var deck []Kind
	start, end := calm(length)
	for at := start; ; at += between(r, minPause, maxPause) {
		lasts := between(r, minFor, maxFor)
		if at+lasts > length-end {
			return faults
		}
		if len(deck) == 0 {
			deck = kinds(t)
			r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		f := draw(r, deck[0], t)
		f.At, deck = at, deck[1:]
		if f.For != 0 {
			f.For = lasts
		}
		faults = append(faults, f)
	}
}

// kinds are those that are possible. Processes and wires are many, so what
// breaks them is there more often.
func kinds(t Targets) []Kind {
	all := []Kind{Kill, Kill, Kill, Kill, KillEnvoy, Freeze, RestartPostgres, CrashPostgres, Cut, Cut, Slow, Slow, Narrow, Reset, Reset, Silence, Silence, FlapConfig}
	if len(t.Disks) > 0 {
		all = append(all, FillDisk)
	}
	if len(t.Clocks) > 0 {
		all = append(all, JumpClock, JumpClock)
	}
	if t.Certs {
		all = append(all, RotateCerts)
	}
	if t.Standby {
		all = append(all, FailOver)
	}
	if t.Only != "" {
		return slices.DeleteFunc(all, func(k Kind) bool { return k != t.Only })
	}
	return all
}

// lasting marks a fault that has a duration; Make chooses it.
const lasting = 1

// draw chooses what a fault hits. For is lasting or 0.
func draw(r *rand.Rand, k Kind, t Targets) Fault {
	f := Fault{Kind: k}
	switch k {
	case Kill, Freeze:
		f.Target = pick(r, t.Processes)
	case KillEnvoy:
		f.Target = pick(r, t.Edges)
	case RestartPostgres, CrashPostgres, FailOver:
		f.Target = "postgres"
	case Cut, Reset, Silence, Slow, Narrow:
		f.Target = pick(r, t.Wires)
	case FillDisk:
		f.Target = pick(r, t.Disks)
	case JumpClock:
		f.Target = pick(r, t.Clocks)
		f.Amount = pick(r, jumps(f.Target))
	}
	switch k {
	case Freeze, Cut, Silence, FillDisk, FlapConfig, JumpClock:
		f.For = lasting
	case Slow:
		f.For, f.Amount = lasting, 20+r.IntN(480)
	case Narrow:
		f.For, f.Amount = lasting, 1+r.IntN(15)
	}
	return f
}

// jumps are the seconds by which the clock of a part may be wrong: the database's
// is the platform's, and less than a minute off; others may be far off.
func jumps(part string) []int {
	if part == "postgres" {
		return []int{-30, -5, 5, 30}
	}
	return []int{-300, -30, 30, 300}
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least))).Round(100*time.Millisecond)
}
