package schema

import (
	"strings"
	"unicode/utf8"

	"sluice.dev/sluice/filters/decision"
)

// decode takes the escapes out of c.values and checks them as parameter p.
func (c *Checker) decode(p uint32, where string, plus bool) {
	// Elements are parted before they are decoded: an escaped comma is no comma.
	if w := c.t.words[p : p+ParameterWords]; w[ParameterTypes]&TypeArray != 0 && w[ParameterFlags]&FlagExplode == 0 && len(c.values) == 1 {
		c.split(w[ParameterBetween])
	}
	for i, v := range c.values {
		text, ok := unescape(v, plus)
		if !ok || !utf8.ValidString(text) {
			c.add(where+c.t.at(p+ParameterName), "is not percent-encoded UTF-8", "")
			return
		}
		c.values[i] = text
	}
	c.parameter(p, where)
}

// split parts the only value into elements. A space is written + or %20, and | may
// be %7C.
func (c *Checker) split(between uint32) {
	value := c.values[0]
	c.values = c.values[:0]
	from := 0
	for i := 0; i < len(value); i++ {
		n := 0
		switch b := value[i]; {
		case b == byte(between), b == '+' && between == ' ':
			n = 1
		case b == '%' && i+2 < len(value) && between != ',' && hexDigit(value[i+1]) && hexDigit(value[i+2]) &&
			uint32(unhex(value[i+1])<<4|unhex(value[i+2])) == between:
			n = 3
		}
		if n > 0 {
			c.values = append(c.values, value[from:i])
			from, i = i+n, i+n-1
		}
	}
	c.values = append(c.values, value[from:])
}

// parameter holds c.values against parameter p. Text has no types, so it stands for
// each type that it may: first a number or true and false, then a string.
func (c *Checker) parameter(p uint32, where string) {
	w := c.t.words[p : p+ParameterWords]
	field := where + c.t.at(p+ParameterName)
	if len(c.values) == 0 {
		if w[ParameterFlags]&FlagRequired != 0 {
			c.add(field, "is missing", "")
		}
		return
	}
	array, scalar := w[ParameterTypes]&TypeArray != 0, w[ParameterTypes]&^TypeArray != 0
	if len(c.values) > 1 && !array {
		c.add(field, "is given several times", "one value")
		return
	}
	node := w[ParameterNode]
	if scalar && len(c.values) == 1 {
		c.scratch2 = appendTyped(c.scratch2[:0], c.values[0], w[ParameterTypes])
		last := !array && w[ParameterTypes]&TypeString == 0
		if c.try(node, field, last) {
			return
		}
		c.scratch2 = appendQuoted(c.scratch2[:0], c.values[0])
		if !last && c.try(node, field, !array) {
			return
		}
	}
	if array {
		c.elements(w[ParameterItems])
		last := w[ParameterItems]&TypeString == 0
		if !c.try(node, field, last) && !last {
			c.elements(TypeString)
			c.try(node, field, true)
		}
	}
}

// try checks c.scratch2; what is wrong is told only of the last way to read a value.
func (c *Checker) try(node uint32, field string, last bool) bool {
	c.quiet = !last
	ok := c.check(node, field, c.scratch2)
	c.quiet = false
	return ok
}

// elements writes c.values as an array.
func (c *Checker) elements(types uint32) {
	c.scratch2 = append(c.scratch2[:0], '[')
	for i, v := range c.values {
		if i > 0 {
			c.scratch2 = append(c.scratch2, ',')
		}
		c.scratch2 = appendTyped(c.scratch2, v, types)
	}
	c.scratch2 = append(c.scratch2, ']')
}

// appendTyped appends a text as JSON of one of types: a number or a boolean where
// it is one and may be, else a string.
func appendTyped(b []byte, text string, types uint32) []byte {
	if types&(TypeNumber|TypeInteger) != 0 && isNumber(text) || types&TypeBool != 0 && (text == "true" || text == "false") {
		return append(b, text...)
	}
	return appendQuoted(b, text)
}

func appendQuoted(b []byte, text string) []byte { return decision.AppendText(b, text) }

// isNumber reports whether text is a JSON number.
func isNumber(text string) bool {
	if text == "" || strings.Trim(text, "0123456789+-.eE") != "" {
		return false
	}
	c := Checker{b: []byte(text)}
	return c.number() && c.i == len(text)
}

// unescape takes the percent-encoding out of s; ok is false if it has a % that
// begins none.
func unescape(s string, plus bool) (text string, ok bool) {
	if strings.IndexByte(s, '%') < 0 && (!plus || strings.IndexByte(s, '+') < 0) {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '+' && plus:
			b = append(b, ' ')
		case c != '%':
			b = append(b, c)
		case i+2 < len(s) && hexDigit(s[i+1]) && hexDigit(s[i+2]):
			b = append(b, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
		default:
			return s, false
		}
	}
	return string(b), true
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
