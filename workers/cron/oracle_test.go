package cron

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/platform/limits/growth"
)

// The oracle is a second implementation, as naive as possible: it asks of every
// minute whether it matches. It shares no code with the package and takes its
// own form of the expression, from which the text for Parse is written.

// oracleField is the set of values of one field together with the text that
// means it.
type oracleField struct {
	text   string
	values []int
	star   bool
	ranged bool
}

// oracleDays is a day field: it answers for a date.
type oracleDays struct {
	text string
	star bool
	has  func(date time.Time) bool
}

type oracle struct {
	minute, hour, month oracleField
	dom, dow            oracleDays
}

func (o oracle) text() string {
	return strings.Join([]string{o.minute.text, o.hour.text, o.dom.text, o.month.text, o.dow.text}, " ")
}

func (o oracle) matches(wall time.Time) bool {
	if !slices.Contains(o.minute.values, wall.Minute()) || !slices.Contains(o.hour.values, wall.Hour()) ||
		!slices.Contains(o.month.values, int(wall.Month())) || wall.Second() != 0 {
		return false
	}
	if o.dom.star || o.dow.star {
		return o.dom.has(wall) && o.dow.has(wall)
	}
	return o.dom.has(wall) || o.dow.has(wall)
}

// wallAt returns the local clock at an instant, written as a UTC time.
func wallAt(at time.Time, loc *time.Location) time.Time {
	local := at.In(loc)
	_, offset := local.Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// fires lists the runs in (from, to] by walking the minutes. Offsets must be
// whole minutes.
func (o oracle) fires(from, to time.Time, loc *time.Location) (all []time.Time) {
	start := from.Truncate(time.Minute).Add(-3 * time.Hour)
	seen := map[time.Time]bool{} // wall clock times shown so far
	previous := wallAt(start, loc)
	for at := start.Add(time.Minute); !at.After(to); at = at.Add(time.Minute) {
		wall := wallAt(at, loc)
		due := o.matches(wall) && (o.minute.ranged || o.hour.ranged || !seen[wall])
		for skipped := previous.Add(time.Minute); skipped.Before(wall); skipped = skipped.Add(time.Minute) {
			due = due || o.matches(skipped)
		}
		seen[wall], previous = true, wall
		if due && at.After(from) {
			all = append(all, at)
		}
	}
	return all
}

func randomField(r *rand.Rand, low, high int) oracleField {
	size := high - low + 1
	a, b, step := low+r.IntN(size), low+r.IntN(size), 1+r.IntN(size)
	walk := func(from, to, step int) (values []int) {
		if to < from {
			to += size
		}
		for v := from; v <= to; v += step {
			values = append(values, low+(v-low)%size)
		}
		return values
	}
	switch r.IntN(6) {
	case 0:
		return oracleField{text: "*", values: walk(low, high, 1), star: true, ranged: true}
	case 1:
		return oracleField{text: fmt.Sprintf("*/%d", step), values: walk(low, high, step), star: true, ranged: true}
	case 2:
		return oracleField{text: fmt.Sprintf("%d-%d/%d", a, b, step), values: walk(a, b, step), ranged: true}
	case 3:
		return oracleField{text: fmt.Sprintf("%d/%d", a, step), values: walk(a, high, step), ranged: true}
	case 4:
		return oracleField{text: fmt.Sprintf("%d,%d", a, b), values: []int{a, b}}
	}
	return oracleField{text: fmt.Sprint(a), values: []int{a}}
}

func (f oracleField) days(part func(time.Time) int) oracleDays {
	return oracleDays{text: f.text, star: f.star, has: func(d time.Time) bool { return slices.Contains(f.values, part(d)) }}
}

func lastDay(d time.Time) int { return time.Date(d.Year(), d.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day() }

// nearestTo walks outwards from a day of the date's month until it meets a
// weekday.
func nearestTo(d time.Time, day int) int {
	for distance := range 3 {
		for _, candidate := range []int{day - distance, day + distance} {
			at := time.Date(d.Year(), d.Month(), candidate, 0, 0, 0, 0, time.UTC)
			if at.Month() == d.Month() && at.Weekday() != time.Saturday && at.Weekday() != time.Sunday {
				return candidate
			}
		}
	}
	return 0
}

func randomDom(r *rand.Rand) oracleDays {
	n := 1 + r.IntN(31)
	switch r.IntN(8) {
	case 0:
		return oracleDays{text: "L", has: func(d time.Time) bool { return d.Day() == lastDay(d) }}
	case 1:
		return oracleDays{text: "LW", has: func(d time.Time) bool { return d.Day() == nearestTo(d, lastDay(d)) }}
	case 2:
		return oracleDays{text: fmt.Sprintf("%dW", n), has: func(d time.Time) bool { return n <= lastDay(d) && d.Day() == nearestTo(d, n) }}
	case 3:
		back := n % 20
		return oracleDays{text: fmt.Sprintf("L-%d", back+1), has: func(d time.Time) bool { return d.Day() == lastDay(d)-back-1 }}
	}
	return randomField(r, 1, 31).days(time.Time.Day)
}

func randomDow(r *rand.Rand) oracleDays {
	w, n := r.IntN(7), 1+r.IntN(5)
	switch r.IntN(6) {
	case 0:
		return oracleDays{text: fmt.Sprintf("%dL", w), has: func(d time.Time) bool {
			return int(d.Weekday()) == w && d.AddDate(0, 0, 7).Month() != d.Month()
		}}
	case 1:
		return oracleDays{text: fmt.Sprintf("%d#%d", w, n), has: func(d time.Time) bool {
			return int(d.Weekday()) == w && d.AddDate(0, 0, -7*n).Month() != d.Month() && d.AddDate(0, 0, 7-7*n).Month() == d.Month()
		}}
	}
	return randomField(r, 0, 6).days(func(d time.Time) int { return int(d.Weekday()) })
}

func randomOracle(r *rand.Rand) oracle {
	return oracle{
		minute: randomField(r, 0, 59), hour: randomField(r, 0, 23), month: randomField(r, 1, 12),
		dom: randomDom(r), dow: randomDow(r),
	}
}

// oracleWindows are stretches around clock changes of every kind, and one
// ordinary month end.
var oracleWindows = []struct{ zone, from string }{
	{"America/New_York", "2016-03-11T20:00:00Z"},
	{"America/New_York", "2016-11-04T20:00:00Z"},
	{"Australia/Lord_Howe", "2024-10-04T03:00:00Z"},
	{"Australia/Lord_Howe", "2024-04-05T03:00:00Z"},
	{"Antarctica/Troll", "2024-03-29T12:00:00Z"},
	{"Antarctica/Troll", "2024-10-25T12:00:00Z"},
	{"Pacific/Apia", "2011-12-29T00:00:00Z"},
	{"Asia/Kathmandu", "1985-12-30T00:00:00Z"},
	{"Africa/Casablanca", "2025-02-21T12:00:00Z"},
	{"Europe/Berlin", "2044-02-28T00:00:00Z"},
	{"UTC", "2040-12-30T00:00:00Z"},
}

// TestAgainstEveryMinute compares Next with the oracle for random expressions.
func TestAgainstEveryMinute(t *testing.T) {
	t.Parallel()
	for i, window := range oracleWindows {
		t.Run(window.zone+window.from, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(i), 7))
			loc, from := mustZone(t, window.zone), mustTime(t, window.from)
			to := from.Add(4 * 24 * time.Hour)
			compared := 0
			for compared < 300 {
				o := randomOracle(r)
				s, err := Parse(o.text())
				if err != nil {
					continue // the generator also writes impossible dates
				}
				compared++
				want := o.fires(from, to, loc)
				if got := s.within(from, to, loc); !slices.EqualFunc(got, want, time.Time.Equal) {
					t.Fatalf("%q:\n got %v\nwant %v", o.text(), got, want)
				}
			}
		})
	}
}

// within lists the runs in (from, to] by repeated Next.
func (s Schedule) within(from, to time.Time, loc *time.Location) (all []time.Time) {
	for at, ok := s.Next(from, loc); ok && !at.After(to); at, ok = s.Next(at, loc) {
		all = append(all, at)
	}
	return all
}

// FuzzNext holds that parsing never hangs, that a run is strictly after its
// starting point, and that asking from just before a run finds the same run.
func FuzzNext(f *testing.F) {
	for _, pair := range same {
		f.Add(pair.a, "Europe/Berlin", int64(1_761_440_400))
		f.Add(pair.b, "America/New_York", int64(4_102_444_800))
	}
	for expr := range refused {
		f.Add(expr, "UTC", int64(0))
	}
	f.Add("0 0 * 2 MON#5", "Europe/Berlin", int64(2_240_000_000))
	f.Fuzz(func(t *testing.T, expr, zone string, from int64) {
		growth.Linear(t, len(expr)+len(zone), 64, 64<<10, func() { _, _ = Parse(expr); _, _ = LoadZone(zone) })
		s, err := Parse(expr)
		if err != nil {
			return
		}
		loc, err := LoadZone(zone)
		if err != nil {
			loc = time.UTC
		}
		after := time.Unix(from, 0)
		next, ok := s.Next(after, loc)
		if !ok {
			if after.Year() < 9000 {
				t.Fatalf("%q has no run after %v", expr, after)
			}
			return
		}
		if !next.After(after) {
			t.Fatalf("%q: %v is not after %v", expr, next, after)
		}
		if again, _ := s.Next(next.Add(-time.Second), loc); !again.Equal(next) {
			t.Fatalf("%q: from a second before %v the next run is %v", expr, next, again)
		}
	})
}
