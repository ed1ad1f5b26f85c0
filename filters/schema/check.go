package schema

import (
	"unicode/utf8"
	"unsafe"

	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/decision"
)

// Checker checks values. It keeps its memory from one to the next, so a VM has one.
// The zero value is ready.
type Checker struct {
	t     *Table
	b     []byte
	field string // of the value: body, query.limit

	i       int // in b
	budget  int // steps that are left
	issue   string
	quiet   bool // what is wrong is not told
	ok      bool // no schema and no name has anything against what was read
	hashing int  // open arrays whose elements must differ

	frames   []frame
	tasks    []task
	links    []link
	marks    []mark
	bits     []uint32
	scratch  []byte
	named    bool // the value at hand is a name
	details  []decision.Detail
	values   []string // of the parameter at hand
	pairs    []occurrence
	first    []int32
	last     []int32
	scratch2 []byte
	base     int // of the tasks of the value that comes next
	above    int // of their links
}

// frame is an open object or array.
type frame struct {
	object, unique   bool
	twice            bool // two of its elements are alike
	base, end, links int  // of its tasks, and of their links
	marks, bits      int
	count            uint32 // of members or elements, the one at hand included
	from, to         int    // the name of the member at hand, between its quotes
	hash             uint64
	name             uint32 // hash of the name at hand
}

// mark is a name of an open object, or the hash of an element that must differ.
type mark struct {
	hash     uint64
	from, to uint32
}

// What a check may take besides what a table says.
const (
	freeSteps    = 1 << 16
	stepsForByte = 16
)

// Issues of a value that is not read to its end.
const (
	issueSteps = "takes too much work to check against its schema"
	issueOpen  = "has too many schemas at work at one time"
	issueMarks = "has too many members or elements that must differ"
)

// check holds one JSON text against a node of c.t. field names it in details. It
// reports whether the text is as it should be.
func (c *Checker) check(node uint32, field string, b []byte) bool {
	c.b, c.field, c.i, c.issue, c.ok, c.hashing, c.named = b, field, 0, "", true, 0, false
	c.budget = freeSteps + stepsForByte*len(b)
	c.frames, c.tasks, c.links, c.marks, c.bits = c.frames[:0], c.tasks[:0], c.links[:0], c.marks[:0], c.bits[:0]
	before := len(c.details)
	c.base, c.above = 0, 0
	c.seed(outside, node, roleAll, true)
	for c.begin() && c.finish() {
	}
	if c.issue == "" && c.i < len(b) {
		c.issue = jsonscan.IssueTrailing
	}
	if c.issue == "" {
		return c.ok
	}
	// What was found in a text that is no JSON says little about it.
	c.details, c.frames = c.details[:before], c.frames[:0]
	c.add(field, c.issue, c.wanted())
	return false
}

// wanted says what would have been right of a text that was not read to its end.
func (c *Checker) wanted() string {
	switch c.issue {
	case issueSteps, issueOpen, issueMarks, jsonscan.IssueDepth:
		return "a simpler value"
	}
	return "JSON; wrong at byte " + decimalText(c.i)
}

// begin reads up to the end of a scalar or of an empty container, entering
// containers on the way. It reports whether the text is right so far.
func (c *Checker) begin() bool {
	for {
		k := c.peek()
		if c.budget < 0 {
			return c.stop(issueSteps)
		}
		c.expand(k == '{')
		if len(c.tasks) > MaxOpen {
			return c.stop(issueOpen)
		}
		if k != '{' && k != '[' {
			return c.scalar(k)
		}
		if !c.open(k == '{') {
			return false
		}
		if c.peek() == k+2 { // in ASCII '}' is '{'+2, and ']' is '['+2
			c.i++
			c.close()
			return true
		}
		if !c.next(k == '{') {
			return false
		}
	}
}

// finish follows a value: it closes containers and stops before the next value. It
// returns false at the end of the text and on an error.
func (c *Checker) finish() bool {
	for len(c.frames) > 0 {
		k, object := c.peek(), c.frames[len(c.frames)-1].object
		switch {
		case k == ',':
			c.i++
			return c.next(object)
		case k == '}' && object, k == ']' && !object:
			c.i++
			c.close()
			if c.issue != "" {
				return false
			}
		default:
			return c.unexpected()
		}
	}
	c.peek()
	return false
}

// live returns a group of task i's node; 0 when it has none, or nothing can change
// what becomes of the task.
func (c *Checker) live(i int, group uint32) uint32 {
	c.budget--
	t := &c.tasks[i]
	if t.skip || t.failed && !t.loud {
		return 0
	}
	return c.t.words[t.node+group]
}

// peek skips white space and returns the byte there, 0 at the end.
func (c *Checker) peek() byte {
	b, i := c.b, c.i
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	if c.i = i; i < len(b) {
		return b[i]
	}
	return 0
}

func (c *Checker) unexpected() bool {
	if c.i >= len(c.b) {
		return c.stop(jsonscan.IssueEnd)
	}
	return c.stop(jsonscan.IssueByte)
}

// stop ends the check; its false is for callers to return.
func (c *Checker) stop(issue string) bool {
	c.issue = issue
	return false
}

// str reads a string from its first quote to behind its last, and counts its
// characters.
func (c *Checker) str() (characters int, ok bool) {
	i, b := c.i+1, c.b
	for {
		from := i
		for i < len(b) && b[i] >= 0x20 && b[i] < utf8.RuneSelf && b[i] != '"' && b[i] != '\\' {
			i++
		}
		characters += i - from
		if c.i = i; i >= len(b) {
			return 0, c.stop(jsonscan.IssueEnd)
		}
		switch k := b[i]; {
		case k == '"':
			c.i++
			return characters, true
		case k == '\\':
			if !jsonscan.Escape(b, i) {
				return 0, c.stop(jsonscan.IssueEscape)
			}
			_, i = jsonscan.Rune(b, i)
			characters++
		case k < 0x20:
			return 0, c.stop(jsonscan.IssueControl)
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return 0, c.stop(jsonscan.IssueUTF8)
			}
			i += n
			characters++
		}
	}
}

// view is b as text, for as long as b is not written.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
