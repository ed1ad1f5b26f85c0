package compile

import (
	"encoding/binary"
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"

	"sluice.dev/sluice/filters/schema"
)

// Bounds of one pattern.
const (
	MaxStates      = 2048
	maxAutomaton   = 64 << 10 // bytes
	maxPattern     = 1024     // bytes of its text
	maxInstruction = 4096
	maxRanges      = 2048
)

// pattern puts the automaton of an expression in the table.
func (s *object) pattern(keyword, expression string) uint32 {
	if at, ok := s.autos[expression]; ok {
		return at
	}
	a, err := automatonOf(expression)
	if err != nil {
		s.fault(s.place.at(keyword), fmt.Sprintf("has a pattern that is not supported: it %s", err), "a regular expression without back references, looking around or \\b, of few states")
		return 0
	}
	w := make([]uint32, schema.PatternWords)
	w[schema.PatternClasses], w[schema.PatternStart] = uint32(len(a.first)), 0
	ascii := make([]byte, 128)
	for i := range ascii {
		ascii[i] = byte(a.class(rune(i)))
	}
	w[schema.PatternASCII], _ = s.put2(string(ascii))
	var ranges []uint32
	for i, r := range a.starts {
		ranges = append(ranges, uint32(r), uint32(a.classOf[i]))
	}
	w[schema.PatternRanges], w[schema.PatternRanges+1] = uint32(len(a.starts)), s.put(ranges)
	var next []byte
	for _, n := range a.next {
		next = binary.LittleEndian.AppendUint16(next, n)
	}
	w[schema.PatternNext], _ = s.put2(string(next))
	w[schema.PatternFlags], _ = s.put2(string(a.flags))
	at := s.put(w)
	s.autos[expression] = at
	return at
}

// automaton is a deterministic one. Characters of one class move it alike.
type automaton struct {
	starts  []rune   // of ranges of characters
	classOf []byte   // of each range
	first   []rune   // a character of each class
	next    []uint16 // by state and class
	flags   []byte   // by state
}

func (a *automaton) class(r rune) int {
	i, found := slices.BinarySearch(a.starts, r)
	if !found {
		i--
	}
	return int(a.classOf[i])
}

// automatonOf makes the automaton of an expression, which finds a match anywhere in
// a text.
func automatonOf(expression string) (*automaton, error) {
	if len(expression) > maxPattern {
		return nil, fmt.Errorf("has more than %d bytes", maxPattern)
	}
	text, err := translate(expression)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("is no regular expression: %w", err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("is no regular expression: %w", err)
	}
	if len(prog.Inst) > maxInstruction {
		return nil, fmt.Errorf("needs too many states")
	}
	b := &builder{prog: prog, a: &automaton{starts: starts(prog)}, states: map[string]uint16{}}
	if !b.classes() {
		return nil, fmt.Errorf("tells too many kinds of characters apart")
	}
	return b.a, b.build()
}

// classes gives the ranges that the same instructions match one class; false: there
// are too many.
func (b *builder) classes() bool {
	if len(b.a.starts) > maxRanges {
		return false
	}
	known := map[string]byte{}
	for _, r := range b.a.starts {
		var key []byte
		for pc := range b.prog.Inst {
			if in := &b.prog.Inst[pc]; moves(in) && in.MatchRune(r) {
				key = binary.LittleEndian.AppendUint16(key, uint16(pc))
			}
		}
		class, ok := known[string(key)]
		if !ok {
			if len(known) > 255 {
				return false
			}
			class = byte(len(known))
			known[string(key)] = class
			b.a.first = append(b.a.first, r)
		}
		b.a.classOf = append(b.a.classOf, class)
	}
	return true
}

// moves reports whether an instruction takes a character.
func moves(in *syntax.Inst) bool {
	switch in.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}

// starts are the first characters of the classes of p.
func starts(p *syntax.Prog) []rune {
	list := []rune{0}
	add := func(lo, hi rune) { list = append(list, lo, hi+1) }
	for _, in := range p.Inst {
		switch in.Op {
		case syntax.InstRuneAnyNotNL:
			add('\n', '\n')
		case syntax.InstRune, syntax.InstRune1:
			if len(in.Rune) == 1 {
				add(in.Rune[0], in.Rune[0])
				for r := unicode.SimpleFold(in.Rune[0]); syntax.Flags(in.Arg)&syntax.FoldCase != 0 && r != in.Rune[0]; r = unicode.SimpleFold(r) {
					add(r, r)
				}
			}
			for i := 0; i+1 < len(in.Rune); i += 2 {
				add(in.Rune[i], in.Rune[i+1])
			}
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(r rune) bool { return r > unicode.MaxRune })
}

// builder makes an automaton by the sets of instructions that a text can be at.
type builder struct {
	prog   *syntax.Prog
	a      *automaton
	states map[string]uint16
	sets   [][]uint32
	work   int
}

// maxWork bounds what making one automaton takes, in instructions looked at.
const maxWork = 20_000_000

func (b *builder) build() error {
	b.state(b.closure([]uint32{uint32(b.prog.Start)}, syntax.EmptyBeginText|syntax.EmptyBeginLine))
	for at := 0; at < len(b.sets); at++ {
		for _, r := range b.a.first {
			to := uint16(at)
			if b.a.flags[at]&(schema.FlagMatched|schema.FlagDead) == 0 {
				to = b.state(b.move(b.sets[at], r))
			}
			b.a.next = append(b.a.next, to)
		}
		if len(b.sets) > MaxStates || 2*len(b.a.next) > maxAutomaton || b.work > maxWork {
			return fmt.Errorf("needs too many states")
		}
	}
	return nil
}

// move returns where a set is after character r. A match may also begin behind it.
func (b *builder) move(set []uint32, r rune) []uint32 {
	var next []uint32
	for _, pc := range set {
		if in := &b.prog.Inst[pc]; moves(in) && in.MatchRune(r) {
			next = append(next, in.Out)
		}
	}
	return b.closure(append(next, uint32(b.prog.Start)), 0)
}

// closure adds what can be reached from a set without a character, where conditions
// hold that are known. Those of the end stay in the set.
func (b *builder) closure(set []uint32, known syntax.EmptyOp) []uint32 {
	seen := map[uint32]bool{}
	var out []uint32
	for len(set) > 0 {
		pc := set[len(set)-1]
		set = set[:len(set)-1]
		b.work++
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch in := &b.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			set = append(set, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			set = append(set, in.Out)
		case syntax.InstEmptyWidth:
			need := syntax.EmptyOp(in.Arg)
			if need&^known == 0 {
				set = append(set, in.Out)
			} else if need&^known&^(syntax.EmptyEndText|syntax.EmptyEndLine) == 0 {
				out = append(out, pc)
			}
		case syntax.InstFail:
		default:
			out = append(out, pc)
		}
	}
	slices.Sort(out)
	return out
}

// state returns the number of a set.
func (b *builder) state(set []uint32) uint16 {
	flags := byte(0)
	if slices.ContainsFunc(set, func(pc uint32) bool { return b.prog.Inst[pc].Op == syntax.InstMatch }) {
		flags, set = schema.FlagMatched|schema.FlagEnd, nil // whatever follows
	}
	key := string(append(encode(set), flags))
	if n, ok := b.states[key]; ok {
		return n
	}
	n := uint16(len(b.sets))
	b.states[key] = n
	b.sets = append(b.sets, set)
	if flags == 0 && b.ends(set, n == 0) {
		flags |= schema.FlagEnd
	}
	if flags == 0 && len(set) == 0 {
		flags = schema.FlagDead
	}
	b.a.flags = append(b.a.flags, flags)
	return n
}

// ends reports whether a text that ends in a set matches.
func (b *builder) ends(set []uint32, first bool) bool {
	known := syntax.EmptyEndText | syntax.EmptyEndLine
	if first {
		known |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	}
	out := b.closure(slices.Clone(set), known)
	return slices.ContainsFunc(out, func(pc uint32) bool { return b.prog.Inst[pc].Op == syntax.InstMatch })
}

func encode(set []uint32) (key []byte) {
	for _, pc := range set {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	return key
}
