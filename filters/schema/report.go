package schema

import (
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/decision"
)

// maxExpected bounds what a detail says of what was expected, in bytes.
const maxExpected = 160

// fail notes that task i's node has something against its value.
func (c *Checker) fail(i int, issue, expected string) {
	t := &c.tasks[i]
	if t.failed = true; t.loud {
		c.add(c.path(""), issue, expected)
	}
}

// failAt is fail for a member of the value.
func (c *Checker) failAt(i int, name, issue, expected string) {
	t := &c.tasks[i]
	if t.failed = true; t.loud {
		c.add(c.path(name), issue, expected)
	}
}

// add adds a detail, while there is room: one more than an answer names, so that
// it can say that there are more.
func (c *Checker) add(field, issue, expected string) {
	if c.quiet || len(c.details) > decision.MaxDetails {
		return
	}
	c.details = append(c.details, decision.Detail{Field: decision.Cut(field, decision.MaxName), Issue: issue, Expected: decision.Cut(expected, maxExpected)})
}

// path is where the value at hand stands, such as body.items[3].price, with a
// member of it if name is not empty. It costs nothing where details have no room.
func (c *Checker) path(name string) string {
	if c.quiet || len(c.details) > decision.MaxDetails {
		return ""
	}
	b := append(make([]byte, 0, 2*decision.MaxName), c.field...)
	for i := range c.frames {
		if len(b) > decision.MaxName {
			return string(b)
		}
		if f := &c.frames[i]; f.object {
			b = appendName(append(b, '.'), c.b[f.from:f.to])
		} else {
			b = strconv.AppendUint(append(b, '['), uint64(f.count-1), 10)
			b = append(b, ']')
		}
	}
	if name != "" {
		b = append(append(b, '.'), name[:min(len(name), decision.MaxName+4)]...)
	}
	return string(b)
}

// appendName appends what of a name has room in a detail.
func appendName(b, raw []byte) []byte {
	return jsonscan.Append(b, raw[:jsonscan.Cut(raw, decision.MaxName+1)])
}

var names = [...]string{"null", "boolean", "object", "array", "number", "string", "integer"}

// typeNames lists types, such as: string or null.
func typeNames(types uint32) string {
	text := ""
	for i := len(names) - 1; i >= 0; i-- {
		if types>>i&1 == 1 && (i < len(names)-1 || types&TypeNumber == 0) {
			if text != "" {
				text += " or "
			}
			text += names[i]
		}
	}
	return text
}

func decimalText(n int) string { return strconv.Itoa(n) }

func count(n uint32, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.FormatUint(uint64(n), 10) + " " + unit + "s"
}

// String writes d as people do.
func (d decimal) String() string {
	sign := ""
	if d.negative {
		sign = "-"
	}
	switch digits := strings.Replace(d.digits, ".", "", 1); {
	case d.n == 0:
		return "0"
	case d.exp >= 0 && d.n+d.exp <= 24:
		return sign + digits + strings.Repeat("0", d.exp)
	case d.exp < 0 && -d.exp < d.n:
		return sign + digits[:d.n+d.exp] + "." + digits[d.n+d.exp:]
	case d.exp < 0 && -d.exp <= 24:
		return sign + "0." + strings.Repeat("0", -d.exp-d.n) + digits
	default:
		return sign + digits + "e" + strconv.Itoa(d.exp)
	}
}

// runes counts the characters of a string's inside.
func runes(raw []byte) (n int) {
	for i := 0; i < len(raw); n++ {
		_, i = jsonscan.Rune(raw, i)
	}
	return n
}
