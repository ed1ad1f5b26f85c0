package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/workers/webhooks"
)

// functions are what templates may call.
var functions = template.FuncMap{
	"asset": files.Path, "number": number, "bytes": byteSize, "millis": millis, "percent": percent, "when": when, "instant": instant,
	"seconds": seconds, "pretty": pretty, "join": strings.Join, "hook": func(t webhooks.Timestamp) *time.Time { return orNil(t.Time) },
	"dict": dict, "tone": tone, "statusTone": statusTone, "micros": micros, "inPercent": inPercent, "width": width,
}

// orNil is nil for the zero time.
func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// number writes a count, or what a pointer to one leads to, with its thousands
// apart.
func number(v any) string {
	text := fmt.Sprint(reflect.Indirect(reflect.ValueOf(v)))
	digits := strings.TrimPrefix(text, "-")
	if strings.Trim(digits, "0123456789") != "" {
		return text
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteRune('\u202f') // a thin space, which does not break
		}
		b.WriteRune(d)
	}
	return text[:len(text)-len(digits)] + b.String()
}

// byteSize writes a size with three digits at most.
func byteSize(n int64) string {
	v, unit := float64(n), 0
	units := []string{"B", "kB", "MB", "GB", "TB", "PB"}
	for v >= 1000 && unit < len(units)-1 {
		v, unit = v/1000, unit+1
	}
	if unit == 0 || v >= 100 {
		return fmt.Sprintf("%.0f %s", v, units[unit])
	}
	return fmt.Sprintf("%.1f %s", v, units[unit])
}

// millis writes milliseconds as people read times.
func millis(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

// percent writes part of whole; "–" of nothing.
func percent(part, whole int64) string {
	if whole == 0 {
		return "–"
	}
	p := 100 * float64(part) / float64(whole)
	if p > 0 && p < 0.1 {
		return "< 0.1 %"
	}
	return strconv.FormatFloat(math.Round(p*10)/10, 'f', -1, 64) + " %"
}

// when writes how far t is from now.
func when(t, now time.Time) string {
	d := now.Sub(t)
	if d < 0 {
		return "in " + span(-d)
	}
	if d < time.Second {
		return "just now"
	}
	return span(d) + " ago"
}

// seconds writes a number of seconds.
func seconds(s float64) string { return span(time.Duration(s * float64(time.Second))) }

// span writes a duration in its largest unit.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// instant writes a time in UTC to the second.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// pretty indents JSON; what is none stays as it is.
func pretty(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// dict makes a map from names and values that follow each other, so that a
// template can hand several to another.
func dict(pairs ...any) map[string]any {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

// tone is how a state looks: good, busy, bad or dim.
func tone(state any) string {
	if p, ok := state.(*string); ok {
		state = deref(p)
	}
	switch fmt.Sprint(state) {
	case "active", "success", "succeeded", "settled", "live", "current":
		return "good"
	case "pending", "executing", "waiting", "held", "granted", "settling", "running", "behind", "paused", "under_way", "cached":
		return "busy"
	case "failed", "disabled", "unresolved", "abandoned", "interrupted", "gone", "refused":
		return "bad"
	}
	return "dim"
}
