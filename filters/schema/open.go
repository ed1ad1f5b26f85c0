package schema

import "sluice.dev/sluice/filters/caps/jsonscan"

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
		c.seed(i, c.t.words[g+ArrayWords+n], roleAll, loud)
	} else if w[ArrayItems] != 0 {
		c.seed(i, w[ArrayItems], roleAll, loud)
	}
	if w[ArrayContains] != 0 {
		c.seed(i, w[ArrayContains], roleContains, false)
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
			c.seed(i, c.t.words[g+ObjectNames], roleAll, c.tasks[i].loud)
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
			c.seed(i, node, roleAll, loud)
		}
	}
	for n, p := uint32(0), w[ObjectPatterns+1]; n < w[ObjectPatterns]; n, p = n+1, p+PatternPairs {
		c.budget -= 1 + len(name)/16
		if c.t.matches(c.t.words[p], name) {
			known = true
			c.seed(i, c.t.words[p+1], roleAll, loud)
		}
	}
	if !known && w[ObjectOthers] != 0 {
		c.seed(i, w[ObjectOthers], roleAll, loud)
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
