package cron

import (
	"math/bits"
	"time"
)

// Wall-clock arithmetic: local time is counted in seconds since
// 1970-01-01T00:00:00 on the local clock, with no zone in it.

const (
	minuteSeconds = 60
	daySeconds    = 24 * 60 * minuteSeconds
	// cycleMonths is the length of the Gregorian cycle: weekdays and leap years
	// repeat after 400 years.
	cycleMonths = 400 * 12
)

// endOfTime is the first second of the year 10000, past which RFC 3339 cannot
// write a time.
var endOfTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// nextLocal returns the first matching wall-clock time at or after from. False
// means none: the expression is impossible.
func (s Schedule) nextLocal(from int64) (int64, bool) {
	day := floorDiv(from, daySeconds)
	inDay := (from - day*daySeconds + minuteSeconds - 1) / minuteSeconds // whole minutes, rounded up
	date, ok := s.nextDay(day)
	if !ok {
		return 0, false
	}
	if date == day {
		if minute, ok := s.nextMinute(int(inDay)); ok {
			return day*daySeconds + int64(minute)*minuteSeconds, true
		}
		if date, ok = s.nextDay(day + 1); !ok {
			return 0, false
		}
	}
	minute, ok := s.nextMinute(0)
	return date*daySeconds + int64(minute)*minuteSeconds, ok
}

// nextMinute returns the first matching minute of a day at or after from,
// counted from midnight.
func (s Schedule) nextMinute(from int) (int, bool) {
	hour, minute := from/60, from%60
	if hour > 23 {
		return 0, false
	}
	if s.hours&(1<<hour) != 0 {
		if rest := s.minutes >> minute; rest != 0 {
			return from + bits.TrailingZeros64(rest), true
		}
	}
	later := s.hours >> (hour + 1)
	if later == 0 || s.minutes == 0 {
		return 0, false
	}
	hour += 1 + bits.TrailingZeros32(later)
	return hour*60 + bits.TrailingZeros64(s.minutes), true
}

// nextDay returns the first matching day at or after from, in days since
// 1970-01-01.
func (s Schedule) nextDay(from int64) (int64, bool) {
	year, mon, dom := time.Unix(from*daySeconds, 0).UTC().Date()
	first := from - int64(dom) + 1
	skip := ^uint32(0) << dom // days before from do not count
	for range cycleMonths + 1 {
		m := month{length: monthLength(year, mon), first: int(((first+4)%7 + 7) % 7)} // 1970-01-01 was a Thursday
		if s.months&(1<<mon) != 0 {
			if set := s.days(m) & skip; set != 0 {
				return first + int64(bits.TrailingZeros32(set)) - 1, true
			}
		}
		first += int64(m.length)
		skip = ^uint32(0)
		if mon++; mon > time.December {
			year, mon = year+1, time.January
		}
	}
	return 0, false
}

// monthLength returns the number of days in a month of the Gregorian calendar.
func monthLength(year int, mon time.Month) int {
	switch mon {
	case time.April, time.June, time.September, time.November:
		return 30
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// floorDiv divides rounding down, also for negative numerators.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
