package schema

import (
	"unicode/utf8"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

// The words of an automaton. It moves from state to state by the class of each
// character; those below 128 have theirs in a table, others in ranges.
const (
	PatternClasses = iota              // how many
	PatternStart                       // first state
	PatternASCII                       // place of 128 bytes: classes
	PatternRanges                      // count and place: words that are the first character of a range and its class
	PatternNext    = PatternRanges + 2 // place of the table: 2 bytes for each state and class
	PatternFlags   = PatternNext + 1   // place of a byte for each state
	PatternWords   = PatternFlags + 1
)

// Flags of states.
const (
	FlagMatched = 1 << iota // whatever follows
	FlagEnd                 // if nothing follows
	FlagDead                // nothing will match any more
)

// matches runs the automaton at place p over the inside of a string. It takes time
// linear in raw, and logarithmic in the ranges beyond ASCII.
func (t *Table) matches(p uint32, raw []byte) bool {
	classes, state := t.words[p+PatternClasses], t.words[p+PatternStart]
	ascii, next, flags := t.words[p+PatternASCII], t.words[p+PatternNext], t.words[p+PatternFlags]
	for i := 0; ; {
		switch f := t.text[flags+state]; {
		case f&FlagMatched != 0:
			return true
		case f&FlagDead != 0:
			return false
		case i >= len(raw):
			return f&FlagEnd != 0
		}
		class := uint32(0)
		if c := raw[i]; c < utf8.RuneSelf && c != '\\' {
			class = uint32(t.text[ascii+uint32(c)])
			i++
		} else {
			var r rune
			r, i = jsonscan.Rune(raw, i)
			class = t.class(p, ascii, r)
		}
		at := next + 2*(state*classes+class)
		state = uint32(t.text[at]) | uint32(t.text[at+1])<<8
	}
}

// class returns the class of a character.
func (t *Table) class(p, ascii uint32, r rune) uint32 {
	if r < utf8.RuneSelf {
		return uint32(t.text[ascii+uint32(r)])
	}
	low, high, from := uint32(0), t.words[p+PatternRanges], t.words[p+PatternRanges+1]
	for high-low > 1 {
		if mid := (low + high) / 2; t.words[from+2*mid] <= uint32(r) {
			low = mid
		} else {
			high = mid
		}
	}
	return t.words[from+2*low+1]
}
