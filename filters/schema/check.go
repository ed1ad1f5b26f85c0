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
	c.seed(outside, node, roleAll, 0, true)
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

// next readies what the next member or element is held against.
func (c *Checker) next(object bool) bool {
	if object {
		return c.member()
	}
	f := &c.frames[len(c.frames)-1]
	f.count++
	c.base, c.above = len(c.tasks), len(c.links)
	for i := f.base; i < f.end; i++ {
		if g := c.live(i, NodeArray); g != 0 {
			c.element(i, g, f.count-1)
		}
	}
	return true
}

// element seeds what element n of task i's array is held against.
func (c *Checker) element(i int, g, n uint32) {
	w := c.t.words[g : g+ArrayWords]
	loud := c.tasks[i].loud
	if n < w[ArrayPrefix] {
		c.seed(i, c.t.words[g+ArrayWords+n], roleAll, 0, loud)
	} else if w[ArrayItems] != 0 {
		c.seed(i, w[ArrayItems], roleAll, 0, loud)
	}
	if w[ArrayContains] != 0 {
		c.seed(i, w[ArrayContains], roleContains, 0, false)
	}
}

// member reads a name and its colon, and seeds what the member is held against.
func (c *Checker) member() bool {
	if c.peek() != '"' {
		return c.unexpected()
	}
	from := c.i + 1
	if _, ok := c.str(); !ok {
		return false
	}
	to := c.i - 1
	if c.peek() != ':' {
		return c.unexpected()
	}
	c.i++
	if len(c.marks) >= MaxMarks {
		return c.stop(issueMarks)
	}
	name := c.b[from:to]
	f := &c.frames[len(c.frames)-1]
	f.from, f.to, f.name = from, to, hashName(name)
	f.count++
	c.marks = append(c.marks, mark{uint64(f.name), uint32(from), uint32(to)})
	c.names(name)
	c.base, c.above = len(c.tasks), len(c.links)
	for i, end, hash := f.base, f.end, f.name; i < end; i++ {
		if g := c.live(i, NodeObject); g != 0 {
			c.property(i, g, name, hash)
		}
	}
	return true
}

// names holds a name against what must be true of names.
func (c *Checker) names(name []byte) {
	f := c.frames[len(c.frames)-1]
	c.base, c.above = len(c.tasks), len(c.links)
	for i := f.base; i < f.end; i++ {
		if g := c.live(i, NodeObject); g != 0 && c.t.words[g+ObjectNames] != 0 {
			c.seed(i, c.t.words[g+ObjectNames], roleAll, 0, c.tasks[i].loud)
		}
	}
	if len(c.tasks) == c.base {
		return
	}
	c.named = true
	c.expand(false)
	c.held(TypeString, name, runes(name))
	c.named = false
}

// property seeds what a member of task i's object is held against.
func (c *Checker) property(i int, g uint32, name []byte, hash uint32) {
	w := c.t.words[g : g+ObjectWords]
	loud, known := c.tasks[i].loud, false
	if e := c.t.find(w[ObjectProperties], w[ObjectProperties+1], name, hash); e != 0 {
		node, bit := c.t.words[e+3], c.t.words[e+4]
		if bit != None {
			c.bits[c.tasks[i].bits+int(bit/bitsOfWord32)] |= 1 << (bit % bitsOfWord32)
		}
		if node != 0 {
			known = true
			c.seed(i, node, roleAll, 0, loud)
		}
	}
	for n, p := uint32(0), w[ObjectPatterns+1]; n < w[ObjectPatterns]; n, p = n+1, p+PatternPairs {
		c.budget -= 1 + len(name)/16
		if c.t.matches(c.t.words[p], name) {
			known = true
			c.seed(i, c.t.words[p+1], roleAll, 0, loud)
		}
	}
	if !known && w[ObjectOthers] != 0 {
		c.seed(i, w[ObjectOthers], roleAll, 0, loud)
	}
}

// find returns the place of a property; 0: it is not there. It takes time
// logarithmic in the properties.
func (t *Table) find(count, from uint32, name []byte, hash uint32) uint32 {
	low, high := uint32(0), count
	for low < high {
		if mid := (low + high) / 2; t.words[from+mid*PropertyWords] < hash {
			low = mid + 1
		} else {
			high = mid
		}
	}
	for ; low < count; low++ {
		e := from + low*PropertyWords
		if t.words[e] != hash {
			return 0
		}
		if jsonscan.Spells(name, t.at(e+1)) {
			return e
		}
	}
	return 0
}

// open enters a container.
func (c *Checker) open(object bool) bool {
	if len(c.frames) >= MaxDepth {
		return c.stop(jsonscan.IssueDepth)
	}
	c.i++
	f := frame{object: object, base: c.base, end: len(c.tasks), links: c.above, marks: len(c.marks), bits: len(c.bits)}
	is, group := uint32(TypeArray), uint32(NodeArray)
	if object {
		is, group = TypeObject, NodeObject
	}
	for i := f.base; i < f.end; i++ {
		n := c.tasks[i].node
		if !c.typed(i, n, is) {
			continue
		}
		if e := c.t.words[n+NodeEnum]; e != 0 {
			c.fail(i, issueEnum, c.t.at(e+EnumText))
		}
		switch g := c.t.words[n+group]; {
		case g == 0:
		case object:
			c.tasks[i].bits = len(c.bits)
			for range (c.t.words[g+ObjectBits]+31)/32 + (c.t.words[g+ObjectDependents]+31)/32 {
				c.bits = append(c.bits, 0)
			}
		case c.t.words[g+ArrayUnique] != 0:
			f.unique = true
		}
	}
	if f.unique {
		c.hashing++
	}
	c.frames = append(c.frames, f)
	return true
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
