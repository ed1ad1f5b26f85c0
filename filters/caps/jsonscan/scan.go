// Package jsonscan walks JSON text in place: it says where values begin and
// end and never builds them. Validate checks a document once; everything else
// here works on text that has passed it, and therefore has no error to return.
//
// It uses neither reflection nor recursion, so it runs inside a WASM filter
// with a stack of 64 KiB, and a deeply nested body costs no memory.
//
// Each function takes time linear in the bytes that it is given, and only
// Append and Apply allocate. A walk looks at each byte of its container twice
// at most, so whoever walks the same bytes again at each level of nesting has
// to bound the levels.
package jsonscan

import "unicode/utf8"

// MaxDepth is the deepest nesting that Validate can be asked to allow.
const MaxDepth = 512

// MaxBlank is how many bytes of white space Compact allows.
const MaxBlank = 1024

// SyntaxError says where and how a text is not JSON.
type SyntaxError struct {
	Offset int // in bytes, of the first byte that cannot be right
	Issue  string
}

// Error returns the issue.
func (e *SyntaxError) Error() string { return e.Issue }

// The issues that Validate reports.
const (
	IssueEnd      = "unexpected end"
	IssueByte     = "unexpected byte"
	IssueControl  = "control character in a string"
	IssueEscape   = "invalid escape"
	IssueUTF8     = "invalid UTF-8"
	IssueDepth    = "nested too deeply"
	IssueTrailing = "data after the value"
	IssueBlank    = "too much white space"
)

// Validate returns nil if b is exactly one JSON value (RFC 8259) in UTF-8, with
// white space around it, nested at most maxDepth deep; maxDepth beyond MaxDepth
// counts as MaxDepth. A document is accepted if and only if encoding/json and
// utf8.Valid both accept it.
func Validate(b []byte, maxDepth int) *SyntaxError {
	s := scanner{b: b, max: min(maxDepth, MaxDepth), blank: len(b)}
	return s.document()
}

// Compact is Validate for what a program writes as a credential: no white space
// around the value, and MaxBlank bytes of it inside at most.
func Compact(b []byte, maxDepth int) *SyntaxError {
	if n := len(b); n > 0 && (Space(b[:1], 0) > 0 || Space(b[n-1:], 0) > 0) {
		return &SyntaxError{Issue: IssueBlank}
	}
	s := scanner{b: b, max: min(maxDepth, MaxDepth), blank: MaxBlank}
	return s.document()
}

// scanner is the state of one Validate. The first issue stops it.
type scanner struct {
	b     []byte
	i     int
	max   int
	blank int // bytes of white space that may still come
	depth int
	open  [MaxDepth / 8]byte // a bit for each level: 1 is an object
	issue string
}

// document reads one value and what must be nothing after it.
func (s *scanner) document() *SyntaxError {
	// Each turn reads one value down to a scalar, and then closes what ends there.
	for s.begin() && s.finish() {
	}
	switch {
	case s.issue != "":
	case s.blank < 0:
		s.issue = IssueBlank
	case s.i < len(s.b):
		s.issue = IssueTrailing
	default:
		return nil
	}
	return &SyntaxError{Offset: s.i, Issue: s.issue}
}

// begin reads up to the end of a scalar or of an empty container, entering
// containers on the way. It reports whether the text is right so far.
func (s *scanner) begin() bool {
	for {
		switch c := s.peek(); c {
		case '{', '[':
			if !s.push(c == '{') {
				return false
			}
			if s.peek() == c+2 { // in ASCII '}' is '{'+2, and ']' is '['+2
				s.depth--
				s.i++
				return true
			}
			if c == '{' && !s.key() {
				return false
			}
		case '"':
			return s.str()
		case 't':
			return s.literal("true")
		case 'f':
			return s.literal("false")
		case 'n':
			return s.literal("null")
		default:
			return s.number()
		}
	}
}

// finish follows a value: it closes containers and stops before the next
// value. It returns false at the end of the document and on an error.
func (s *scanner) finish() bool {
	for s.depth > 0 {
		c, object := s.peek(), s.inObject()
		switch {
		case c == ',':
			s.i++
			return !object || s.key()
		case c == '}' && object, c == ']' && !object:
			s.depth--
			s.i++
		default:
			return s.unexpected()
		}
	}
	s.peek()
	return false
}

// key reads a member's name and colon.
func (s *scanner) key() bool {
	if s.peek() != '"' {
		return s.unexpected()
	}
	if !s.str() {
		return false
	}
	if s.peek() != ':' {
		return s.unexpected()
	}
	s.i++
	return true
}

// str reads a string from its first quote to behind its last.
func (s *scanner) str() bool {
	s.i++
	for {
		s.i = plain(s.b, s.i)
		if s.i >= len(s.b) {
			return s.fail(IssueEnd)
		}
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return true
		case c == '\\':
			if !s.escape() {
				return false
			}
		case c < 0x20:
			return s.fail(IssueControl)
		default:
			r, n := utf8.DecodeRune(s.b[s.i:])
			if r == utf8.RuneError && n == 1 {
				return s.fail(IssueUTF8)
			}
			s.i += n
		}
	}
}

// plain returns the index of the first byte at or behind i that is not an ASCII
// character which stands for itself in a string.
func plain(b []byte, i int) int {
	for i < len(b) && b[i] >= 0x20 && b[i] < utf8.RuneSelf && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// escape reads a backslash and what belongs to it. Surrogates need not be in
// pairs: the grammar does not ask for it, and neither do most parsers.
func (s *scanner) escape() bool {
	n := 2
	if s.i+1 >= len(s.b) {
		return s.fail(IssueEscape)
	}
	switch s.b[s.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
	case 'u':
		n = 6
		if s.i+6 > len(s.b) || hex4(s.b[s.i+2:]) < 0 {
			return s.fail(IssueEscape)
		}
	default:
		return s.fail(IssueEscape)
	}
	s.i += n
	return true
}

// literal reads a word; it may be called at a byte that does not begin it.
func (s *scanner) literal(word string) bool {
	for j := range len(word) {
		if s.i >= len(s.b) || s.b[s.i] != word[j] {
			return s.unexpected()
		}
		s.i++
	}
	return true
}

// number reads a number: no plus in front, no leading zeros, digits on both
// sides of the point. Any other byte where a value is due ends here too.
func (s *scanner) number() bool {
	if s.at('-') {
		s.i++
	}
	if s.at('0') {
		s.i++
	} else if !s.digits() {
		return false
	}
	if s.at('.') {
		if s.i++; !s.digits() {
			return false
		}
	}
	if s.at('e') || s.at('E') {
		if s.i++; s.at('+') || s.at('-') {
			s.i++
		}
		return s.digits()
	}
	return true
}

// digits reads one digit or more.
func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		s.i++
	}
	return s.i > from || s.unexpected()
}

// at reports whether the next byte is c, without skipping space.
func (s *scanner) at(c byte) bool { return s.i < len(s.b) && s.b[s.i] == c }

// peek skips white space and returns the byte there, 0 at the end.
func (s *scanner) peek() byte {
	from := s.i
	s.i = Space(s.b, from)
	if s.blank -= s.i - from; s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// push enters a container, unless it would be one level too deep.
func (s *scanner) push(object bool) bool {
	if s.depth >= s.max {
		return s.fail(IssueDepth)
	}
	at, bit := s.depth/8, byte(1)<<(s.depth%8)
	if s.open[at] &^= bit; object {
		s.open[at] |= bit
	}
	s.depth++
	s.i++
	return true
}

// inObject reports whether the innermost open container is an object; there
// must be one.
func (s *scanner) inObject() bool {
	d := s.depth - 1
	return s.open[d/8]>>(d%8)&1 == 1
}

// unexpected is the issue when the byte here, or the end, cannot be right.
func (s *scanner) unexpected() bool {
	if s.i >= len(s.b) {
		return s.fail(IssueEnd)
	}
	return s.fail(IssueByte)
}

// fail stops the scan; its false is for callers to return.
func (s *scanner) fail(issue string) bool {
	s.issue = issue
	return false
}
