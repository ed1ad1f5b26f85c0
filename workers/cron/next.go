package cron

import (
	"sort"
	"time"
)

// lookBack bounds how far before an instant an earlier zone period can still
// share local times with it. The largest changes on record, moves across the
// date line, repeat one day.
const lookBack = 2 * daySeconds

// period is a stretch of time in which a zone keeps one offset from UTC. All
// values are seconds.
type period struct {
	start, end int64 // Unix time; start is included, end is not
	offset     int64 // local = UTC + offset
}

// localEnd returns the local time at which the period's clock stops.
func (p period) localEnd() int64 { return p.end + p.offset }

// periodAt returns the period that holds the instant.
func periodAt(unix int64, loc *time.Location) period {
	at := time.Unix(unix, 0).In(loc)
	_, offset := at.Zone()
	p := period{start: -endOfTime, end: 2 * endOfTime, offset: int64(offset)}
	start, end := at.ZoneBounds()
	if !start.IsZero() {
		p.start = start.Unix()
	}
	if !end.IsZero() {
		p.end = end.Unix()
	}
	if p.end <= unix { // Go 1.26: on 31 December of leap years past the zone's table, ZoneBounds ends the period a day early
		p.end = sameOffsetUntil(unix, p.offset, loc)
	}
	return p
}

// sameOffsetUntil returns an instant, at most one day after unix, up to which
// the zone keeps the offset.
func sameOffsetUntil(unix, offset int64, loc *time.Location) int64 {
	ahead := sort.Search(daySeconds, func(i int) bool {
		_, later := time.Unix(unix+1+int64(i), 0).In(loc).Zone()
		return int64(later) != offset
	})
	return unix + 1 + int64(ahead)
}

// repeatedUntil returns the local time up to which clocks before the period had
// already run when it began, looking back no further than lookBack from at.
// Local times below it have occurred once already.
func repeatedUntil(p period, at int64, loc *time.Location) int64 {
	mark := p.start + p.offset
	for p.start > at-lookBack {
		p = periodAt(p.start-1, loc)
		mark = max(mark, p.localEnd())
	}
	return mark
}

// Next returns the first instant strictly after `after` at which the schedule
// fires in the zone, in UTC. A nil zone is UTC. False means that there is none
// before the year 10000. Years before 1 are taken as year 1.
//
// The cost does not depend on how often the schedule fires: whole days and
// months are skipped by bit masks, and zone periods one by one.
func (s Schedule) Next(after time.Time, loc *time.Location) (time.Time, bool) {
	if loc == nil {
		loc = time.UTC
	}
	if after.Year() < 1 {
		after = time.Time{}
	}
	if after.Year() > 9999 {
		return time.Time{}, false
	}
	unix, ok := s.nextUnix(after.Unix()+1, loc)
	if !ok || unix >= endOfTime {
		return time.Time{}, false
	}
	return time.Unix(unix, 0).UTC(), true
}

// nextUnix returns the first firing at or after the Unix time at. It starts
// from the period of the second before, so that a gap which ends exactly there
// is seen.
func (s Schedule) nextUnix(at int64, loc *time.Location) (int64, bool) {
	p := periodAt(at-1, loc)
	mark := repeatedUntil(p, at, loc)
	for {
		from := at + p.offset
		if !s.ranged {
			from = max(from, mark)
		}
		local, ok := s.nextLocal(from)
		if !ok {
			return 0, false
		}
		if local < p.localEnd() {
			return local - p.offset, true
		}
		next := periodAt(p.end, loc)
		if local < p.end+next.offset { // inside the gap, or such a local time that no clock shows
			return p.end, true
		}
		mark = max(mark, p.localEnd())
		at, p = p.end, next
		if at >= endOfTime {
			return 0, false
		}
	}
}

// Last returns the latest firing after `after` and not after `until`, in UTC.
// False means that there is none. It looks back from `until` in doubling steps,
// so that a long absence costs no more than a short one.
func (s Schedule) Last(after, until time.Time, loc *time.Location) (time.Time, bool) {
	const longest = 100 * 366 * 24 * time.Hour // past it the whole rest is searched at once
	for step := time.Minute; ; step *= 2 {
		from := until.Add(-step)
		done := step > longest || !from.After(after)
		if done {
			from = after
		}
		if last, ok := s.lastWithin(from, until, loc); ok || done {
			return last, ok
		}
	}
}

// lastWithin walks forward from `from` and returns the last firing that is not
// after `until`.
func (s Schedule) lastWithin(from, until time.Time, loc *time.Location) (last time.Time, found bool) {
	for {
		next, ok := s.Next(from, loc)
		if !ok || next.After(until) {
			return last, found
		}
		last, found, from = next, true, next
	}
}

// Upcoming returns the first n firings strictly after `after`, in UTC. Fewer
// come back when the year 10000 is reached.
func (s Schedule) Upcoming(after time.Time, loc *time.Location, n int) []time.Time {
	var runs []time.Time
	for range n {
		next, ok := s.Next(after, loc)
		if !ok {
			break
		}
		runs = append(runs, next)
		after = next
	}
	return runs
}
