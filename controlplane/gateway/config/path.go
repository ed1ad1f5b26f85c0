package config

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// Kind is what a segment of a path pattern matches.
type Kind uint8

// The kinds, most specific first: that is the order in which routes are tried.
const (
	Literal  Kind = iota // itself; an empty last one is the / that a path ends in
	Variable             // one whole segment that is not empty
	Tail                 // everything that follows, also nothing
)

// Segment is what stands between two slashes of a pattern.
type Segment struct {
	Kind Kind
	Text string // of a literal; the name of a variable
}

// Pattern is a parsed path of a route.
type Pattern []Segment

var variableForm = regexp.MustCompile(`^\{[a-z][a-z0-9_]*\}$`)

// plainSegment reports whether s has only letters and digits, and signs that
// mean nothing in a path. Documents have thousands of segments: an expression
// would take a third of the time in which they are checked.
func plainSegment(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		return !letter && !strings.ContainsRune("._~!$&'()+,;=:@-", c)
	})
}

// maxPathBytes bounds the text of a pattern.
const maxPathBytes = 512

// ParsePath reads the path of a route. Its errors say what is wrong in words
// that follow the name of the field.
//
// It takes time and memory linear in s, of 512 bytes at most.
func ParsePath(s string) (Pattern, error) {
	if !strings.HasPrefix(s, "/") || len(s) > maxPathBytes {
		return nil, errors.New("must begin with / and have at most 512 bytes")
	}
	parts := strings.Split(s[1:], "/")
	p := make(Pattern, len(parts))
	for i, part := range parts {
		switch {
		case part == "*" && i == len(parts)-1:
			p[i] = Segment{Kind: Tail}
		case strings.HasPrefix(part, "{") && variableForm.MatchString(part):
			p[i] = Segment{Variable, part[1 : len(part)-1]}
		case part == "" && i < len(parts)-1:
			return nil, errors.New("has an empty segment")
		case part == "." || part == "..":
			return nil, errors.New("has a . or .. segment, which edges resolve before they match")
		case plainSegment(part):
			p[i] = Segment{Literal, part}
		default:
			return nil, errors.New("has a segment that is neither plain text, {a_variable} nor a last *")
		}
	}
	return p, nil
}

// IsLiteral reports whether p matches one path only.
func (p Pattern) IsLiteral() bool {
	return !slices.ContainsFunc(p, func(s Segment) bool { return s.Kind != Literal })
}

// Prefix returns the text that p's paths begin with, and whether that is all
// that p asks of them: a literal start followed by a tail.
func (p Pattern) Prefix() (prefix string, ok bool) {
	last := len(p) - 1
	return p[:last].text(), p[last].Kind == Tail && p[:last].IsLiteral()
}

func (p Pattern) text() string {
	var b strings.Builder
	b.WriteByte('/')
	for _, s := range p {
		b.WriteString(s.Text)
		b.WriteByte('/')
	}
	return b.String()
}

// Regexp returns an RE2 expression that the whole path must match.
func (p Pattern) Regexp() string {
	var b strings.Builder
	for _, s := range p {
		b.WriteByte('/')
		switch s.Kind {
		case Literal:
			b.WriteString(regexp.QuoteMeta(s.Text))
		case Variable:
			b.WriteString(`[^/]+`)
		case Tail:
			b.WriteString(`.*`)
		}
	}
	return b.String()
}

// Compare orders patterns from the more to the less specific one, looking at
// segments from the left. It returns 0 when both match the same paths.
func (p Pattern) Compare(q Pattern) int {
	for i := range min(len(p), len(q)) {
		if c := cmp.Compare(p[i].Kind, q[i].Kind); c != 0 {
			return c
		}
		if p[i].Kind == Literal && p[i].Text != q[i].Text {
			return cmp.Compare(p[i].Text, q[i].Text)
		}
	}
	return cmp.Compare(len(p), len(q))
}
