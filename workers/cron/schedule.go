// Package cron reads five-field cron expressions and computes when they fire in
// an IANA time zone.
//
// It is pure: no clock, no state, no I/O but the reading of zone data in
// LoadZone. The rules at clock changes are those of Vixie cron, stated here
// because no two libraries agree on them:
//
//  1. Local times that a forward change leaves out still count: if any of them matches, the schedule fires once, at the first
//     valid instant after the gap, whatever the form of the expression.
//  2. Of local times that a backward change repeats, an expression whose minute and hour are plain values or lists fires at the
//     first occurrence only; one with `*`, a range or a step in minute or hour fires in both.
//
// When day-of-month and day-of-week are both restricted, a day that satisfies
// either matches. A day field that contains `*` (also as `*/2`) counts as
// unrestricted, as crontab(5) has it, so that then both must match.
package cron

// Schedule is a parsed expression. It is a small comparable value, safe to copy
// and to share. The zero Schedule never fires; Parse returns the useful ones.
type Schedule struct {
	minutes uint64 // bit m: minute m, 0–59
	hours   uint32 // bit h: hour h, 0–23
	months  uint16 // bit m: month m, 1–12
	dom     monthDays
	dow     weekDays
	either  bool // both day fields restricted: one of them suffices
	ranged  bool // `*`, a range or a step in minute or hour: fires in both passes of a repeated hour
}

// monthDays is the day-of-month field.
type monthDays struct {
	days        uint32 // bit d: day d, 1–31
	fromLast    uint32 // bit n: the day n days before the last, 0–30
	nearest     uint32 // bit d: the weekday nearest to day d, in the same month
	lastWeekday bool   // the last Monday-to-Friday of the month
}

// weekDays is the day-of-week field. Sunday is 0.
type weekDays struct {
	days uint8    // bit w: every weekday w
	last uint8    // bit w: the last weekday w of the month
	nth  [7]uint8 // nth[w], bit n: the nth weekday w of the month, 1–5
}

// everyWeekday is weekDays.days of an unrestricted field.
const everyWeekday = 1<<7 - 1

// month is what the day fields need to know of one calendar month.
type month struct {
	length int // days in it, 28–31
	first  int // weekday of its first day, Sunday is 0
}

// weekday returns the weekday of day d, Sunday is 0.
func (m month) weekday(d int) int { return (m.first + d - 1) % 7 }

// all returns a mask with one bit for each day of the month.
func (m month) all() uint32 { return (1<<(m.length+1) - 1) &^ 1 }

// matches returns the days of the month that the day-of-month field selects,
// one bit a day.
func (f monthDays) matches(m month) uint32 {
	set := f.days
	if f.fromLast != 0 {
		for n := range m.length {
			set |= (f.fromLast >> n & 1) << (m.length - n)
		}
	}
	if f.nearest != 0 {
		set |= f.nearestWeekdays(m)
	}
	if f.lastWeekday {
		set |= 1 << nearestWeekday(m, m.length)
	}
	return set & m.all()
}

// nearestWeekdays returns the days selected by the field's `W` items. A day the
// month does not have selects nothing.
func (f monthDays) nearestWeekdays(m month) (set uint32) {
	for d := 1; d <= m.length; d++ {
		if f.nearest&(1<<d) != 0 {
			set |= 1 << nearestWeekday(m, d)
		}
	}
	return set
}

// nearestWeekday returns the Monday-to-Friday closest to day d without leaving
// the month.
func nearestWeekday(m month, d int) int {
	switch w := m.weekday(d); {
	case w == 6 && d == 1:
		return d + 2
	case w == 6:
		return d - 1
	case w == 0 && d == m.length:
		return d - 2
	case w == 0:
		return d + 1
	}
	return d
}

// matches returns the days of the month that the day-of-week field selects, one
// bit a day.
func (f weekDays) matches(m month) (set uint32) {
	if f.days == everyWeekday {
		return m.all()
	}
	for d := 1; d <= m.length; d++ {
		w := m.weekday(d)
		switch {
		case f.days&(1<<w) != 0,
			f.last&(1<<w) != 0 && d > m.length-7,
			f.nth[w]&(1<<((d+6)/7)) != 0:
			set |= 1 << d
		}
	}
	return set
}

// days returns the days of the month on which the schedule fires, one bit a
// day.
func (s Schedule) days(m month) uint32 {
	dom, dow := s.dom.matches(m), s.dow.matches(m)
	if s.either {
		return dom | dow
	}
	return dom & dow
}
