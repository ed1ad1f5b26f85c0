package cron

import (
	"fmt"
	"strings"
	"unicode"
)

// MaxLength is the longest expression accepted, in bytes.
const MaxLength = 256

// Error says what is wrong with an expression.
type Error struct {
	Field   string // the field's name, such as "hour"; empty when the fault is not in one field
	Problem string // what is wrong, in words a user can act on
}

// Error returns the field and the problem in one line.
func (e *Error) Error() string {
	if e.Field == "" {
		return "cron expression: " + e.Problem
	}
	return "cron expression, " + e.Field + ": " + e.Problem
}

// aliases are the names for common schedules, all of them fixed times but
// @hourly.
var aliases = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

// Parse reads an expression of five fields, minute, hour, day of month, month
// and day of week, separated by spaces or tabs, or one of the aliases @yearly,
// @annually, @monthly, @weekly, @daily, @midnight and @hourly.
//
// Every field is a comma-separated list of `*`, values, ranges (`a-b`, wrapping
// when a is greater than b) and steps (`*/n`, `a-b/n`, and `a/n` for from a to
// the end of the field). Months and weekdays have three-letter English names.
// Sunday is 0 or 7. Day of month also knows `L` (last day), `L-n`, `nW`
// (weekday nearest to n) and `LW`; day of week `nL` (last n of the month) and
// `n#k` (kth n of the month); both take `?` for `*`. Expressions that can never
// fire are refused.
//
// Every error is an *Error.
//
// It takes time and memory for MaxLength bytes at the most: longer texts are not
// looked at, and what an error repeats of one is cut.
func Parse(expr string) (Schedule, error) {
	fields, err := split(expr)
	if err != nil {
		return Schedule{}, err
	}
	s, err := compile(fields)
	if err != nil {
		return Schedule{}, err
	}
	if _, ok := s.nextDay(0); !ok {
		return Schedule{}, &Error{Problem: "never fires: no month has such a day"}
	}
	return s, nil
}

// split returns the expression's five fields in upper case, aliases resolved.
func split(expr string) ([]string, error) {
	if len(expr) > MaxLength {
		return nil, &Error{Problem: fmt.Sprintf("longer than %d bytes", MaxLength)}
	}
	if strings.IndexFunc(expr, func(r rune) bool { return r > unicode.MaxASCII }) >= 0 {
		return nil, &Error{Problem: "has characters outside ASCII"}
	}
	expr = strings.Trim(expr, " \t")
	if strings.HasPrefix(expr, "@") {
		full, ok := aliases[strings.ToLower(expr)]
		if !ok {
			return nil, &Error{Problem: fmt.Sprintf("%q is not a known alias", clip(expr))}
		}
		expr = full
	}
	fields := strings.FieldsFunc(expr, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(fields) > 0 && strings.Contains(fields[0], "=") {
		return nil, &Error{Problem: "carries a time zone; give the zone separately"}
	}
	if len(fields) != 5 {
		return nil, &Error{Problem: fmt.Sprintf("has %d fields, expected 5: minute, hour, day of month, month, day of week", len(fields))}
	}
	for i, f := range fields {
		fields[i] = strings.ToUpper(f)
	}
	return fields, nil
}

// compile turns five upper-case fields into a Schedule.
func compile(fields []string) (s Schedule, err error) {
	minute, err := parseField(minuteUnit, fields[0])
	if err != nil {
		return s, err
	}
	hour, err := parseField(hourUnit, fields[1])
	if err != nil {
		return s, err
	}
	dom, err := parseField(domUnit, fields[2])
	if err != nil {
		return s, err
	}
	mon, err := parseField(monthUnit, fields[3])
	if err != nil {
		return s, err
	}
	dow, err := parseField(dowUnit, fields[4])
	if err != nil {
		return s, err
	}
	return Schedule{
		minutes: minute.set,
		hours:   uint32(hour.set),
		months:  uint16(mon.set),
		dom:     monthDays{days: uint32(dom.set), fromLast: dom.fromLast, nearest: dom.nearest, lastWeekday: dom.lastWeekday},
		dow:     weekDays{days: uint8(dow.set), last: dow.lastOf, nth: dow.nth},
		either:  !dom.star && !dow.star,
		ranged:  minute.ranged || hour.ranged,
	}, nil
}

// clip shortens text for an error message.
func clip(text string) string {
	const longest = 40
	if len(text) > longest {
		return text[:longest] + "…"
	}
	return text
}
