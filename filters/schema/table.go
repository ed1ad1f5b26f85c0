// Package schema checks the parameters and the JSON body of a request against a
// table that package compile has made of JSON Schemas (2020-12). It compiles under
// TinyGo, and the filter validate runs it inside Envoy.
//
// # What a check costs
//
// A body is read once, from its first byte to its last: syntax, names and every
// schema that applies to a value are checked as the value goes by, alternatives
// (oneOf, anyOf, not, if) beside each other and never one after the other. A
// request takes at most 16 steps for each of its bytes and 65,536 besides, where a
// step is one schema that is held against one value; MaxOpen bounds what is held
// at one time. What would take more is refused. Memory is that of MaxDepth open
// containers, of at most MaxMarks names and elements that must differ, and of the
// longest string that has escapes.
package schema

import "encoding/binary"

// Bounds of what is checked.
const (
	MaxDepth = 128   // containers in each other
	MaxOpen  = 4096  // schemas at work at one time
	MaxMarks = 65536 // names of open objects, and elements of arrays that must differ
)

// Bounds of a table.
const (
	MaxNodes = 4096
	MaxTable = 256 << 10 // bytes of it
)

// None stands for a bound that is not there.
const None = 1<<32 - 1

// Types of values, as bits of a node's first word.
const (
	TypeNull = 1 << iota
	TypeBool
	TypeObject
	TypeArray
	TypeNumber
	TypeString
	TypeInteger
	AnyType = 1<<iota - 1
)

// A node is one schema: NodeWords words at its place in the table. Places of
// groups are 0 where the schema has none.
const (
	NodeTypes = iota // that a value may have
	NodeEnum
	NodeNumber
	NodeString
	NodeArray
	NodeObject
	NodeApply // schemas that apply to the same value
	NodeWords
)

// The words of an enum: how many values, a text that lists them, and EnumWords for
// each value.
const (
	EnumCount    = iota
	EnumText     // place and length
	EnumValues   = EnumText + 2
	EnumWords    = 3 // kind, and what the kind needs
	ValueNull    = 0
	ValueFalse   = 1
	ValueTrue    = 2
	ValueString  = 3 // place and length of the text
	ValueDecimal = 4 // place of the decimal
)

// The words of a decimal, which is its digits times ten to the power of its
// exponent. Digits neither begin nor end with 0; there are none in 0.
const (
	DecimalNegative = iota
	DecimalExponent
	DecimalDigits // place and length
	DecimalWords  = DecimalDigits + 2
)

// The words of a number's group: places of decimals.
const (
	NumberMin = iota
	NumberOver
	NumberMax
	NumberUnder
	NumberMultiple
	NumberWords
)

// The words of a string's group.
const (
	StringMin     = iota
	StringMax     // None: any
	StringFormat  // 0: none
	StringPattern // place of the automaton
	StringText    // place and length of the pattern
	StringWords   = StringText + 2
)

// The words of an array's group; the nodes of the first elements stand behind.
const (
	ArrayMin = iota
	ArrayMax
	ArrayUnique
	ArrayItems // node of the others
	ArrayContains
	ArrayMinContains
	ArrayMaxContains
	ArrayPrefix // how many nodes stand behind
	ArrayWords
)

// The words of an object's group.
const (
	ObjectMin = iota
	ObjectMax
	ObjectOthers     // node of members that nothing names
	ObjectNames      // node of names
	ObjectBits       // how many names have a bit
	ObjectProperties // count and place
	ObjectRequired   = ObjectProperties + 2
	ObjectPatterns   = ObjectRequired + 2
	ObjectNeeds      = ObjectPatterns + 2 // dependentRequired
	ObjectDependents = ObjectNeeds + 2    // dependentSchemas
	ObjectWords      = ObjectDependents + 2
	PropertyWords    = 5 // hash, place and length of the name, node or 0, bit or None
	RequiredWords    = 3 // bit, place and length of the name
	PatternPairs     = 2 // place of the automaton, node
	NeedWords        = 4 // bit of the name that needs, bit, place and length of what it needs
	DependentWords   = 2 // bit of the name, node
	bitsOfWord32     = 32
)

// The words of an apply group; the nodes of all, any and one stand behind.
const (
	ApplyAll = iota // how many
	ApplyAny
	ApplyOne
	ApplyNot // node
	ApplyIf
	ApplyThen
	ApplyElse
	ApplyAnyText // place and length of what is expected
	ApplyOneText = ApplyAnyText + 2
	ApplyWords   = ApplyOneText + 2
)

// Table is what compile made of the requests of one route. The zero value is not
// usable; Parse makes one.
type Table struct {
	words []uint32
	text  string
}

const version = 1

// The words at the start of a table.
const (
	headVersion = iota
	headRequest // place of the request
	HeadWords
)

// Encode returns a table as bytes. words[1] is the place of the request.
func Encode(words []uint32, text []byte) []byte {
	out := make([]byte, 0, 4+4*len(words)+len(text))
	words[headVersion] = version
	out = binary.LittleEndian.AppendUint32(out, uint32(len(words)))
	for _, w := range words {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return append(out, text...)
}

// Parse reads what Encode wrote; nil: it is no table of this version. It takes time
// and memory linear in b, which it copies.
func Parse(b []byte) *Table {
	if len(b) < 4 || len(b) > MaxTable {
		return nil
	}
	n := int(binary.LittleEndian.Uint32(b))
	if n < HeadWords || n > (len(b)-4)/4 {
		return nil
	}
	t := &Table{words: make([]uint32, n), text: string(b[4+4*n:])}
	for i := range t.words {
		t.words[i] = binary.LittleEndian.Uint32(b[4+4*i:])
	}
	if t.words[headVersion] != version || int(t.words[headRequest])+RequestWords > n {
		return nil
	}
	return t
}

// at returns a text whose place and length stand at word i.
func (t *Table) at(i uint32) string {
	from, n := t.words[i], t.words[i+1]
	return t.text[from : from+n]
}

// Hash is the hash of names in objects (FNV-1a).
func Hash(name string) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}
