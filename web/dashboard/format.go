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
	"asset": files.Path, "number": number, "bytes": byteSize, "millis": millis, "percent": percent, "when": when, "instant": exact, "ago": ago, "cutID": cutID,
	"seconds": seconds, "pretty": pretty, "join": strings.Join, "hook": func(t webhooks.Timestamp) *time.Time { return orNil(t.Time) },
	"dict": dict, "took": func(ms int64) string { return millis(float64(ms)) }, "spark": spark, "tone": tone, "statusTone": statusTone, "micros": micros, "inPercent": inPercent, "width": width,
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
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	case d < 48*time.Hour:
		return "1 day"
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// instant writes a time in UTC to the second.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// exact is a time as an element that says it to the second, in UTC; the script writes
// it in the reader's zone if they want that.
func exact(t time.Time) template.HTML { return timeElement(t, "exact", instant(t)) }

// ago is how far a time is from now, as an element with the exact time in its tooltip.
func ago(t, now any) template.HTML {
	at := timeOf(t)
	return timeElement(at, "ago", when(at, timeOf(now)))
}

// timeOf is a time, or the one that a pointer leads to.
func timeOf(v any) time.Time {
	t, _ := reflect.Indirect(reflect.ValueOf(v)).Interface().(time.Time)
	return t
}

// timeElement is a time with a text, both of which are ours.
func timeElement(t time.Time, class, text string) template.HTML {
	return template.HTML(`<time class="` + class + `" datetime="` + t.UTC().Format(time.RFC3339) + `" title="` + instant(t) + `">` + text + `</time>`)
}

// Lengths of a cut identifier, in bytes.
const (
	idWhole = 18 // up to which it is not cut
	idHead  = 9  // of what is shown of its beginning
	idTail  = 4  // and of its end
)

// cutText is an identifier in three parts, of which the one in the middle is not seen.
type cutText struct{ Head, Rest, Tail string }

// cutID cuts an identifier in the middle: its prefix and its first characters stay, and
// its last.
func cutID(id any) cutText {
	text := deref(asText(id))
	if len(text) <= idWhole || !isASCII(text) {
		return cutText{Head: text}
	}
	head := idHead
	if prefix := strings.IndexByte(text, '_') + 1; prefix > 0 && prefix <= idHead {
		head = prefix + 4
	}
	return cutText{text[:head], text[head : len(text)-idTail], text[len(text)-idTail:]}
}

// asText is what v says, or what a pointer to a text leads to.
func asText(v any) *string {
	if p, ok := v.(*string); ok {
		return p
	}
	text := fmt.Sprint(v)
	return &text
}

// isASCII reports whether a text can be cut anywhere.
func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > 127 }) < 0
}

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
	case "failing", "retrying", "failed", "disabled", "unresolved", "abandoned", "interrupted", "gone", "refused":
		return "bad"
	}
	return "dim"
}
