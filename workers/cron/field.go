package cron

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// unit describes the values a field can take.
type unit struct {
	name     string
	min, max int
	names    []string // names[i] stands for min+i
}

var (
	minuteUnit = unit{name: "minute", min: 0, max: 59}
	hourUnit   = unit{name: "hour", min: 0, max: 23}
	domUnit    = unit{name: "day of month", min: 1, max: 31}
	monthUnit  = unit{name: "month", min: 1, max: 12, names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
		"JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}}
	dowUnit = unit{name: "day of week", min: 0, max: 6, names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}}
)

// parsed is what one field selects.
type parsed struct {
	set    uint64 // bit v: value v
	star   bool   // contains `*`
	ranged bool   // contains `*`, a range or a step

	fromLast    uint32 // day of month: L, L-n
	nearest     uint32 // day of month: nW
	lastWeekday bool   // day of month: LW
	lastOf      uint8  // day of week: nL
	nth         [7]uint8
}

// parseField reads a whole field, already in upper case.
func parseField(u unit, text string) (p parsed, err error) {
	for item := range strings.SplitSeq(text, ",") {
		var special bool
		switch u.name {
		case domUnit.name:
			special, err = p.monthDayItem(item)
		case dowUnit.name:
			special, err = p.weekDayItem(item)
		}
		if err == nil && !special {
			err = p.item(u, item)
		}
		if err != nil {
			return p, &Error{Field: u.name, Problem: err.Error()}
		}
	}
	return p, nil
}

// item reads `*`, a value, a range or a step into the set.
func (p *parsed) item(u unit, text string) error {
	body, stepText, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		var err error
		if step, err = number(stepText, 1, u.max-u.min+1); err != nil {
			return fmt.Errorf("the step in %q: %w", clip(text), err)
		}
	}
	low, high, err := p.bounds(u, body, stepped)
	if err != nil {
		return err
	}
	p.ranged = p.ranged || stepped
	size := u.max - u.min + 1
	if high < low { // wraps over the end of the field
		high += size
	}
	for v := low; v <= high; v += step {
		p.set |= 1 << (u.min + (v-u.min)%size)
	}
	return nil
}

// bounds reads the part of an item before its step, and returns the first and
// the last value it covers.
func (p *parsed) bounds(u unit, text string, stepped bool) (low, high int, err error) {
	if text == "*" || text == "?" && (u.name == domUnit.name || u.name == dowUnit.name) {
		p.star, p.ranged = true, true
		return u.min, u.max, nil
	}
	lowText, highText, isRange := strings.Cut(text, "-")
	if low, err = u.value(lowText); err != nil {
		return 0, 0, err
	}
	switch {
	case isRange:
		p.ranged = true
		high, err = u.value(highText)
		if low == 7 && high < low && u.name == dowUnit.name { // 7-2 begins on Sunday
			low = 0
		}
		return low, high, err
	case stepped:
		return low, max(low, u.max), nil
	}
	return low, low, nil
}

// value reads one number or name. Sunday may be 7, which is returned as it is.
func (u unit) value(text string) (int, error) {
	for i, name := range u.names {
		if text == name {
			return u.min + i, nil
		}
	}
	highest := u.max
	if u.name == dowUnit.name {
		highest = 7
	}
	return number(text, u.min, highest)
}

// number reads an unsigned decimal within bounds.
func number(text string, low, high int) (int, error) {
	if text == "" {
		return 0, errors.New("a value is missing")
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is not valid", clip(text))
	}
	if int(n) < low || int(n) > high {
		return 0, fmt.Errorf("%d is outside %d–%d", n, low, high)
	}
	return int(n), nil
}

// monthDayItem reads L, L-n, LW and nW; false means that the item is none of
// them.
func (p *parsed) monthDayItem(text string) (bool, error) {
	switch {
	case text == "L":
		p.fromLast |= 1
	case text == "LW":
		p.lastWeekday = true
	case strings.HasPrefix(text, "L-"):
		n, err := number(text[2:], 1, 30)
		if err != nil {
			return true, fmt.Errorf("in %q: %w", clip(text), err)
		}
		p.fromLast |= 1 << n
	case strings.HasSuffix(text, "W"):
		d, err := number(strings.TrimSuffix(text, "W"), 1, 31)
		if err != nil {
			return true, fmt.Errorf("in %q: %w", clip(text), err)
		}
		p.nearest |= 1 << d
	default:
		return false, nil
	}
	return true, nil
}

// weekDayItem reads nL and n#k; false means that the item is neither.
func (p *parsed) weekDayItem(text string) (bool, error) {
	if day, count, ok := strings.Cut(text, "#"); ok {
		w, err := dowUnit.value(day)
		if err != nil {
			return true, fmt.Errorf("in %q: %w", clip(text), err)
		}
		n, err := number(count, 1, 5)
		if err != nil {
			return true, fmt.Errorf("in %q: %w", clip(text), err)
		}
		p.nth[w%7] |= 1 << n
		return true, nil
	}
	if !strings.HasSuffix(text, "L") {
		return false, nil
	}
	w, err := dowUnit.value(strings.TrimSuffix(text, "L"))
	if err != nil {
		return true, fmt.Errorf("in %q, expected a weekday and L, such as 5L or FRIL", clip(text))
	}
	p.lastOf |= 1 << (w % 7)
	return true, nil
}
