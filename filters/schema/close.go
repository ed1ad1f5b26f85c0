package schema

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

// close leaves the innermost container and decides its tasks.
func (c *Checker) close() {
	f := c.frames[len(c.frames)-1]
	c.frames = c.frames[:len(c.frames)-1]
	if f.unique {
		c.hashing--
	}
	twice, found := mark{}, false
	if f.object || f.unique {
		twice, found = c.twice(f)
	}
	if found && f.object {
		c.ok = false
		c.add(c.path(string(appendName(nil, c.b[twice.from:twice.to]))), "is given twice", "each name once")
	}
	f.twice = found
	c.marks = c.marks[:f.marks]
	if c.hashing > 0 {
		kind := uint64(TypeArray)
		if f.object {
			kind = TypeObject
		}
		c.pass(mix(f.hash + kind))
	}
	c.settle(f.base, f.links, &f)
	c.bits = c.bits[:f.bits]
}

// contents holds what is in a container against task i.
func (c *Checker) contents(i int, f *frame) {
	node := c.tasks[i].node
	if g := c.t.words[node+NodeObject]; g != 0 && f.object {
		c.closeObject(i, g, f.count)
	}
	if g := c.t.words[node+NodeArray]; g != 0 && !f.object {
		c.closeArray(i, g, f.count, f.twice)
	}
}

func (c *Checker) closeObject(i int, g, members uint32) {
	w, bits := c.t.words[g:g+ObjectWords], c.tasks[i].bits
	seen := func(bit uint32) bool { return c.bits[bits+int(bit/bitsOfWord32)]>>(bit%bitsOfWord32)&1 == 1 }
	c.sized(i, members, w[ObjectMin], w[ObjectMax], "member")
	for n, p := uint32(0), w[ObjectRequired+1]; n < w[ObjectRequired]; n, p = n+1, p+RequiredWords {
		if c.budget--; !seen(c.t.words[p]) {
			c.failAt(i, c.t.at(p+1), "is missing", "")
		}
	}
	for n, p := uint32(0), w[ObjectNeeds+1]; n < w[ObjectNeeds]; n, p = n+1, p+NeedWords {
		if c.budget--; seen(c.t.words[p]) && !seen(c.t.words[p+1]) {
			c.failAt(i, c.t.at(p+2), "is missing beside a field that needs it", "")
		}
	}
	failed := bits + int(w[ObjectBits]+31)/32
	for n, p := uint32(0), w[ObjectDependents+1]; n < w[ObjectDependents]; n, p = n+1, p+DependentWords {
		if c.budget--; seen(c.t.words[p]) && c.bits[failed+int(n/bitsOfWord32)]>>(n%bitsOfWord32)&1 == 1 {
			c.fail(i, "does not go with one of its fields", "what `dependentSchemas` asks for")
		}
	}
}

func (c *Checker) closeArray(i int, g, elements uint32, twice bool) {
	w := c.t.words[g : g+ArrayWords]
	c.sized(i, elements, w[ArrayMin], w[ArrayMax], "element")
	if w[ArrayUnique] != 0 && twice {
		c.fail(i, "has an element twice", "elements that differ")
	}
	if w[ArrayContains] == 0 {
		return
	}
	if n := c.tasks[i].within; n < w[ArrayMinContains] || w[ArrayMaxContains] != None && n > w[ArrayMaxContains] {
		text := "at least " + decimalText(int(w[ArrayMinContains]))
		if w[ArrayMaxContains] != None {
			text += ", at most " + decimalText(int(w[ArrayMaxContains]))
		}
		c.fail(i, "has too few or too many elements of a kind", text+", that `contains` describes")
	}
}

// sized holds a count against its bounds.
func (c *Checker) sized(i int, n, low, high uint32, unit string) {
	if n < low {
		c.fail(i, "has too few "+unit+"s", "at least "+count(low, unit))
	}
	if high != None && n > high {
		c.fail(i, "has too many "+unit+"s", "at most "+count(high, unit))
	}
}

// twice returns a name of f, or an element, that is there twice. It takes time
// linear in few marks, and with the logarithm of more.
func (c *Checker) twice(f frame) (mark, bool) {
	list := c.marks[f.marks:]
	if len(list) <= 12 {
		for i := range list {
			for j := range i {
				if c.order(list[i], list[j], f.object) == 0 {
					return list[i], true
				}
			}
		}
		return mark{}, false
	}
	slices.SortFunc(list, func(a, b mark) int { return c.order(a, b, f.object) })
	for i := 1; i < len(list); i++ {
		if c.order(list[i-1], list[i], f.object) == 0 {
			return list[i], true
		}
	}
	return mark{}, false
}

// order compares two marks; those of names by the names where the hashes agree.
func (c *Checker) order(a, b mark, names bool) int {
	switch {
	case a.hash < b.hash:
		return -1
	case a.hash > b.hash:
		return 1
	case !names:
		return 0
	}
	x, y := c.b[a.from:a.to], c.b[b.from:b.to]
	if bytes.IndexByte(x, '\\') < 0 && bytes.IndexByte(y, '\\') < 0 {
		return bytes.Compare(x, y)
	}
	for i, j := 0, 0; ; {
		if i == len(x) || j == len(y) {
			return (len(x) - i) - (len(y) - j)
		}
		var p, q rune
		p, i = jsonscan.Rune(x, i)
		q, j = jsonscan.Rune(y, j)
		if p != q {
			return int(p - q)
		}
	}
}

// pass gives the hash of a value to the container that it is in.
func (c *Checker) pass(hash uint64) {
	if len(c.frames) == 0 {
		return
	}
	f := &c.frames[len(c.frames)-1]
	if f.object {
		f.hash += mix(hash ^ hashText(c.b[f.from:f.to]))
		return
	}
	f.hash = mix(f.hash ^ hash)
	if f.unique {
		if len(c.marks) >= MaxMarks {
			c.stop(issueMarks)
			return
		}
		c.marks = append(c.marks, mark{hash: hash})
	}
}

// hashName is Hash of a string's inside.
func hashName(raw []byte) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			h = (h ^ uint32(raw[i])) * 16777619
			i++
			continue
		}
		var r rune
		var buffer [utf8.UTFMax]byte
		r, i = jsonscan.Rune(raw, i)
		for _, b := range buffer[:utf8.EncodeRune(buffer[:], r)] {
			h = (h ^ uint32(b)) * 16777619
		}
	}
	return h
}

// hashText is a hash of a string's inside in 64 bits.
func hashText(raw []byte) uint64 {
	h := uint64(14695981039346656037)
	for i := 0; i < len(raw); {
		var r rune
		r, i = jsonscan.Rune(raw, i)
		h = (h ^ uint64(r)) * 1099511628211
	}
	return mix(h)
}

func hashScalar(is uint32, raw []byte, d decimal) uint64 {
	switch {
	case is == TypeString:
		return hashText(raw) + TypeString
	case is&TypeNumber == 0:
		return mix(uint64(is)<<8 + uint64(raw[0]))
	}
	h := uint64(14695981039346656037) + uint64(d.exp)
	for i := range len(d.digits) {
		if b := d.digits[i]; b != '.' {
			h = (h ^ uint64(b)) * 1099511628211
		}
	}
	if d.negative {
		h++
	}
	return mix(h)
}

// mix spreads what differs over all bits.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
