package schema

import (
	"sluice.dev/sluice/filters/caps/jsonscan"
)

const issueEnum = "is not one of the values that it may have"

// scalar reads a value that is no container, which begins with k, and decides its
// tasks.
func (c *Checker) scalar(k byte) bool {
	from := c.i
	switch k {
	case '"':
		n, ok := c.str()
		if ok {
			c.held(TypeString, c.b[from+1:c.i-1], n)
		}
		return ok
	case 't':
		return c.literal("true", TypeBool)
	case 'f':
		return c.literal("false", TypeBool)
	case 'n':
		return c.literal("null", TypeNull)
	}
	if !c.number() {
		return false
	}
	c.held(TypeNumber, c.b[from:c.i], 0)
	return true
}

func (c *Checker) literal(word string, is uint32) bool {
	from := c.i
	for j := range len(word) {
		if c.i >= len(c.b) || c.b[c.i] != word[j] {
			return c.unexpected()
		}
		c.i++
	}
	c.held(is, c.b[from:c.i], 0)
	return true
}

// number reads a number. Any other byte where a value is due ends here too.
func (c *Checker) number() bool {
	if c.at('-') {
		c.i++
	}
	if c.at('0') {
		c.i++
	} else if !c.digits() {
		return false
	}
	if c.at('.') {
		if c.i++; !c.digits() {
			return false
		}
	}
	if c.at('e') || c.at('E') {
		if c.i++; c.at('+') || c.at('-') {
			c.i++
		}
		return c.digits()
	}
	return true
}

func (c *Checker) digits() bool {
	from := c.i
	for c.i < len(c.b) && c.b[c.i]-'0' <= 9 {
		c.i++
	}
	return c.i > from || c.unexpected()
}

func (c *Checker) at(b byte) bool { return c.i < len(c.b) && c.b[c.i] == b }

// held holds a scalar against the tasks of the value at hand, and decides them.
// raw is its text, of a string what stands between the quotes.
func (c *Checker) held(is uint32, raw []byte, characters int) {
	var d decimal
	if is == TypeNumber {
		if d = parseDecimal(view(raw)); d.integer() {
			is |= TypeInteger
		}
	}
	for i := c.base; i < len(c.tasks); i++ {
		c.budget--
		n := c.tasks[i].node
		if !c.typed(i, n, is) {
			continue
		}
		if e := c.t.words[n+NodeEnum]; e != 0 && !c.listed(e, is, raw, d) {
			c.fail(i, issueEnum, c.t.at(e+EnumText))
		}
		if g := c.t.words[n+NodeString]; g != 0 && is == TypeString {
			c.text(i, g, raw, characters)
		}
		if g := c.t.words[n+NodeNumber]; g != 0 && is&TypeNumber != 0 {
			c.numeric(i, g, d)
		}
	}
	if c.hashing > 0 && !c.named {
		c.pass(hashScalar(is, raw, d))
	}
	c.settle(c.base, c.above, nil)
}

// typed reports whether task i's node allows a type; else the task fails.
func (c *Checker) typed(i int, node, is uint32) bool {
	types := c.t.words[node+NodeTypes]
	if types&is != 0 {
		return true
	}
	c.tasks[i].skip = true
	if types == 0 {
		c.fail(i, "is not allowed here", "")
	} else {
		c.fail(i, "is of another type", typeNames(types))
	}
	return false
}

// listed reports whether a scalar is one of an enum's values.
func (c *Checker) listed(e, is uint32, raw []byte, d decimal) bool {
	t := c.t
	count := t.words[e+EnumCount]
	c.budget -= int(count) / 8
	for p := e + EnumValues; count > 0; count, p = count-1, p+EnumWords {
		switch t.words[p] {
		case ValueNull:
			if is == TypeNull {
				return true
			}
		case ValueFalse:
			if is == TypeBool && raw[0] == 'f' {
				return true
			}
		case ValueTrue:
			if is == TypeBool && raw[0] == 't' {
				return true
			}
		case ValueString:
			if is == TypeString && jsonscan.Spells(raw, t.at(p+1)) {
				return true
			}
		case ValueDecimal:
			if is&TypeNumber != 0 && d.compare(t.decimal(t.words[p+1])) == 0 {
				return true
			}
		}
	}
	return false
}

// text holds a string against group g of task i.
func (c *Checker) text(i int, g uint32, raw []byte, characters int) {
	w := c.t.words[g : g+StringWords]
	if uint32(characters) < w[StringMin] {
		c.fail(i, "is too short", "at least "+count(w[StringMin], "character"))
	}
	if w[StringMax] != None && uint32(characters) > w[StringMax] {
		c.fail(i, "is too long", "at most "+count(w[StringMax], "character"))
	}
	if w[StringPattern] != 0 {
		c.budget -= 1 + len(raw)/16
		if !c.t.matches(w[StringPattern], raw) {
			c.fail(i, "does not match its pattern", c.t.at(g+StringText))
		}
	}
	if w[StringFormat] != 0 {
		c.budget -= 1 + len(raw)/16
		if !formed(w[StringFormat], c.plain(raw)) {
			c.fail(i, "has not the format that it must have", Formats[w[StringFormat]])
		}
	}
}

// plain is what a string's inside stands for. It stays until the next call.
func (c *Checker) plain(raw []byte) string {
	for _, b := range raw {
		if b == '\\' {
			c.scratch = jsonscan.Append(c.scratch[:0], raw)
			return view(c.scratch)
		}
	}
	return view(raw)
}

// numeric holds a number against group g of task i.
func (c *Checker) numeric(i int, g uint32, d decimal) {
	for k, b := range bounds {
		p := c.t.words[g+uint32(k)]
		if p == 0 {
			continue
		}
		of := c.t.decimal(p)
		if k == NumberMultiple {
			if !d.multiple(of) {
				c.fail(i, b.issue, b.expected+of.String())
			}
		} else if v := d.compare(of); v == b.bad || v == 0 && b.strict {
			c.fail(i, b.issue, b.expected+of.String())
		}
	}
}

var bounds = [NumberWords]struct {
	issue, expected string
	bad             int
	strict          bool
}{
	NumberMin:      {"is too small", "at least ", -1, false},
	NumberOver:     {"is too small", "more than ", -1, true},
	NumberMax:      {"is too large", "at most ", 1, false},
	NumberUnder:    {"is too large", "less than ", 1, true},
	NumberMultiple: {"is not a multiple", "a multiple of ", 0, false},
}
