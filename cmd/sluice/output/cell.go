package output

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Widths on a terminal, in characters.
const (
	maxCell = 44 // of a cell of a table
	maxList = 32 // of what is shown of the elements of a list
)

// whole is p, with values as they are.
func (p Printer) whole() Printer {
	p.Terminal = false
	return p
}

// cell is a value in a table.
func (p Printer) cell(v any) string {
	if !p.Terminal || p.Format == "wide" {
		return p.uncut(v)
	}
	if list, ok := v.([]any); ok {
		return p.some(list)
	}
	return Cut(p.uncut(v), maxCell)
}

// some shows the first of a list, and how many more there are.
func (p Printer) some(list []any) string {
	text := ""
	for i, x := range list {
		next := p.uncut(x)
		if i > 0 {
			next = "," + next
		}
		if i > 0 && utf8.RuneCountInString(text+next) > maxList {
			return fmt.Sprintf("%s +%d", text, len(list)-i)
		}
		text += next
	}
	if text == "" {
		return "-"
	}
	return Cut(text, maxCell)
}

// uncut is a value in one line.
func (p Printer) uncut(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		if at, ok := timeOf(v); ok {
			return p.Time(at)
		}
		return plain(v)
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = p.uncut(x)
		}
		return strings.Join(parts, ",")
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, plain(name)+"="+p.uncut(v[name]))
		}
		return strings.Join(parts, " ")
	case float64:
		return fmt.Sprintf("%.15g", v)
	default:
		return fmt.Sprint(v)
	}
}

// plain is a text in which nothing can drive a terminal or break a table: what others
// have written is shown, such as names of keys.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// Cut is s in at most most characters, with … for what was cut.
func Cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// timeOf reads a time as the APIs write it.
func timeOf(s string) (time.Time, bool) {
	if len(s) < len("2006-01-02T15:04:05Z") || s[4] != '-' || s[10] != 'T' {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	return at, err == nil
}

// Time is a time in seconds: relative to now on a terminal.
func (p Printer) Time(at time.Time) string {
	if p.Terminal && p.Format != "wide" {
		return Relative(at, p.Now)
	}
	return at.UTC().Format(time.RFC3339)
}

// Relative is how long ago at was, or in what time it will be, in one unit.
func Relative(at, now time.Time) string {
	d := now.Sub(at)
	past := d >= 0
	if !past {
		d = -d
	}
	var text string
	switch {
	case d < time.Second:
		return "now"
	case d < 2*time.Minute:
		text = fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		text = fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		text = fmt.Sprintf("%dh", int(d.Hours()))
	case d < 2*365*24*time.Hour:
		text = fmt.Sprintf("%dd", int(d.Hours()/24))
	default:
		text = fmt.Sprintf("%dy", int(d.Hours()/24/365))
	}
	if past {
		return text + " ago"
	}
	return "in " + text
}
