package audit

import (
	"slices"
	"strings"
	"time"
)

// Schedule is one that was accepted.
type Schedule struct {
	ID       string
	First    time.Time // when it has to run first
	Minutely bool      // and every minute from then on
	Due      []time.Time
}

// Until fills in when it must have run by end: a schedule of one time always,
// because the accountant comes after it.
func (s Schedule) Until(end time.Time) Schedule {
	s.Due = nil
	if !s.Minutely {
		s.Due = []time.Time{s.First}
		return s
	}
	for at := s.First; at.Before(end); at = at.Add(time.Minute) {
		s.Due = append(s.Due, at)
	}
	return s
}

// Call is a schedule's call of its webhook, as the receiver got it.
type Call struct {
	Execution string
	At        time.Time // by the receiver's clock, which is right
}

// Execution is a run as it is stored.
type Execution struct {
	ID, Schedule string
	For          time.Time
	Status       string
	Why          string // the last thing that its log says
}

// run is one that was due.
type run struct {
	schedule string
	at       int64
}

func dueRuns(seen Seen, stored Stored) Line {
	l := Line{Promise: "no schedule is missed or doubled"}
	made := map[run]int{}
	for _, e := range stored.Executions {
		if e.Status != "skipped" {
			made[run{e.Schedule, e.For.UnixMilli()}]++
		}
	}
	for r, n := range made {
		if n > 1 {
			l.breaks("%s ran %d times for %s", r.schedule, n, time.UnixMilli(r.at).UTC().Format(time.RFC3339))
		}
	}
	for _, s := range seen.Schedules {
		for _, at := range s.Due {
			l.Checked++
			if made[run{s.ID, at.UnixMilli()}] == 0 {
				l.breaks("%s did not run for %s", s.ID, at.UTC().Format(time.RFC3339))
			}
		}
	}
	return l
}

// early bounds how much before its time a run may be called for: what two clocks
// that are well kept differ by.
const early = time.Second

// punctual holds calls to the time at which their runs were due. Only the
// database's clock may bring them forward: those of workers must not matter.
func punctual(seen Seen, stored Stored) Line {
	l := Line{Promise: "no schedule runs before it is due"}
	due := map[string]time.Time{}
	for _, e := range stored.Executions {
		due[e.ID] = e.For
	}
	ahead := 0
	for _, c := range seen.Calls {
		at, known := due[c.Execution]
		if !known {
			continue
		}
		l.Checked++
		switch before := at.Sub(c.At); {
		case before <= early:
		case slices.ContainsFunc(seen.Skews, func(s Skew) bool { return s.Part == "postgres" && s.Seconds > 0 && s.at(c.At) }):
			ahead++
		default:
			l.breaks("%s was called for %v before it was due", c.Execution, before.Round(time.Millisecond))
		}
	}
	if ahead > 0 {
		l.Note = plural(ahead, "call", "calls") + " came early while the database's clock was ahead"
	}
	return l
}

func endedRuns(seen Seen, stored Stored) Line {
	l := Line{Promise: "a run ends once, and success means that it was done", Checked: len(stored.Executions)}
	called, known := map[string]int{}, map[string]bool{}
	for _, c := range seen.Calls {
		called[c.Execution]++
	}
	failed := 0
	for _, e := range stored.Executions {
		known[e.ID] = true
		switch {
		case e.Status == "success" && called[e.ID] == 0:
			l.breaks("%s succeeded without a call", e.ID)
		case e.Status == "waiting" || e.Status == "executing":
			l.breaks("%s is still %s: %s", e.ID, e.Status, e.Why)
		case e.Status == "failed":
			failed++
		}
	}
	more := 0
	for id, n := range called {
		more += n - 1
		if !known[id] {
			l.breaks("%s was called for and is not stored", id)
		}
	}
	l.Note = strings.Join([]string{plural(failed, "run", "runs") + " failed after all retries", plural(more, "call", "calls") + " repeated"}, ", ")
	return l
}
