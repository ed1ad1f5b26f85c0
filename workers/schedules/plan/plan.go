// Package plan decides, without clock or database, when a schedule runs and
// what becomes of the runs that are due: which are started, which wait, which
// are skipped.
package plan

import (
	"time"

	"sluice.dev/sluice/workers/cron"
)

// Plan is when a schedule runs: once, or by a cron expression within optional
// bounds. The zero Plan never runs.
type Plan struct {
	once time.Time // zero: recurring

	expr       cron.Schedule
	loc        *time.Location
	start, end time.Time // inclusive; zero: unbounded
}

// Once returns a Plan with a single run.
func Once(at time.Time) Plan { return Plan{once: at.UTC()} }

// Recurring returns a Plan that follows the expression in the zone, from start
// to end, both inclusive; a zero bound is none.
func Recurring(expr cron.Schedule, loc *time.Location, start, end time.Time) Plan {
	return Plan{expr: expr, loc: loc, start: start, end: end}
}

// Next returns the first run strictly after `after`, in UTC. False means that
// there is none: the schedule is completed.
func (p Plan) Next(after time.Time) (time.Time, bool) {
	if !p.once.IsZero() {
		return p.once, p.once.After(after)
	}
	if before := p.start.Add(-time.Nanosecond); after.Before(before) {
		after = before
	}
	next, ok := p.expr.Next(after, p.loc)
	if !ok || p.ended(next) {
		return time.Time{}, false
	}
	return next, true
}

// ended reports whether a time lies past the end.
func (p Plan) ended(at time.Time) bool { return !p.end.IsZero() && at.After(p.end) }

// last returns the latest run after `after` and not after `until`.
func (p Plan) last(after, until time.Time) (time.Time, bool) {
	if !p.once.IsZero() {
		return p.once, p.once.After(after) && !p.once.After(until)
	}
	if p.ended(until) {
		until = p.end
	}
	if before := p.start.Add(-time.Nanosecond); after.Before(before) {
		after = before
	}
	return p.expr.Last(after, until, p.loc)
}

// Due returns the latest runs from first to now, both inclusive, oldest first
// and at most limit of them; first itself always counts as a run. More reports
// whether there were earlier ones.
func (p Plan) Due(first, now time.Time, limit int) (runs []time.Time, more bool) {
	at := now
	for len(runs) < limit {
		run, ok := p.last(first, at)
		if !ok {
			return reversed(append(runs, first)), false
		}
		runs = append(runs, run)
		at = run.Add(-time.Nanosecond)
	}
	return reversed(runs), true
}

func reversed(times []time.Time) []time.Time {
	for i, j := 0, len(times)-1; i < j; i, j = i+1, j-1 {
		times[i], times[j] = times[j], times[i]
	}
	return times
}
