package compile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Classes of ECMA-262 where those of Go differ, as what stands between brackets.
const (
	spaces    = `\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	notSpaces = `\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
	anyButEnd = `[^\n\r\x{2028}\x{2029}]`
)

// translate writes an expression of ECMA-262, with its flag u, as one of RE2. It
// fails on what no automaton can do, such as looking ahead, and on what Go means
// otherwise.
func translate(e string) (string, error) {
	t := &translator{in: e}
	for t.i < len(e) {
		if err := t.step(); err != nil {
			return "", err
		}
	}
	if t.class {
		return "", fmt.Errorf("has a [ that nothing closes")
	}
	return t.out.String(), nil
}

type translator struct {
	in    string
	i     int
	class bool // inside of brackets
	out   strings.Builder
}

// step translates what stands at t.i.
func (t *translator) step() error {
	rest := t.in[t.i:]
	r, n := utf8.DecodeRuneInString(rest)
	switch {
	case r == '\\':
		return t.escape(rest)
	case t.class:
		switch r {
		case ']':
			t.class = false
		case '[', '&', '~':
			t.out.WriteByte('\\') // means nothing there, but might to Go
		}
	case strings.HasPrefix(rest, "[^]"):
		t.put(`(?s:.)`, 3)
		return nil
	case strings.HasPrefix(rest, "[]"):
		t.put(`[^\x{0}-\x{10ffff}]`, 2)
		return nil
	case strings.HasPrefix(rest, "[^"):
		t.class = true
		t.put("[^", 2)
		return nil
	case r == '[':
		t.class = true
	case r == '.':
		t.put(anyButEnd, 1)
		return nil
	case strings.HasPrefix(rest, "(?"):
		return t.group(rest)
	case r == '}' || r == ']':
		return fmt.Errorf("has a %c that closes nothing", r)
	case r == '{':
		return t.repeat(rest)
	}
	t.put(rest[:n], n)
	return nil
}

func (t *translator) put(text string, n int) {
	t.out.WriteString(text)
	t.i += n
}

// repeat copies a counted repetition.
func (t *translator) repeat(rest string) error {
	end := strings.IndexByte(rest, '}')
	if end < 2 || strings.Trim(rest[1:end], "0123456789,") != "" || rest[1] == ',' {
		return fmt.Errorf("has a { that counts nothing")
	}
	t.put(rest[:end+1], end+1)
	return nil
}

// group copies the start of a group that has no number.
func (t *translator) group(rest string) error {
	switch {
	case strings.HasPrefix(rest, "(?:"):
		t.put("(?:", 3)
	case strings.HasPrefix(rest, "(?<") && len(rest) > 3 && rest[3] != '=' && rest[3] != '!':
		end := strings.IndexByte(rest, '>')
		if end < 0 {
			return fmt.Errorf("has a group without the end of its name")
		}
		t.put("(?:", end+1)
	default:
		return fmt.Errorf("looks ahead or behind, or sets flags")
	}
	return nil
}

// bracketed puts brackets around a class unless there are some.
func (t *translator) bracketed(class string, n int) error {
	if !t.class {
		class = "[" + class + "]"
	}
	t.put(class, n)
	return nil
}

// escape translates a backslash and what belongs to it.
func (t *translator) escape(rest string) error {
	if len(rest) < 2 {
		return fmt.Errorf("ends in a backslash")
	}
	switch c := rest[1]; {
	case c == 's':
		return t.bracketed(spaces, 2)
	case c == 'S':
		return t.bracketed(notSpaces, 2)
	case strings.IndexByte("dDwWtnvfr", c) >= 0:
		t.put(rest[:2], 2)
	case c == 'b' && t.class:
		t.put(`\x08`, 2)
	case c == 'b' || c == 'B':
		return fmt.Errorf("asks for the boundary of a word (\\%c)", c)
	case c == '0' && (len(rest) == 2 || rest[2] < '0' || rest[2] > '9'):
		t.put(`\x00`, 2)
	case c >= '0' && c <= '9' || c == 'k':
		return fmt.Errorf("refers back to a group")
	case c == 'c':
		if len(rest) < 3 || rest[2]|0x20 < 'a' || rest[2]|0x20 > 'z' {
			return fmt.Errorf("has a \\c without a letter")
		}
		t.put(fmt.Sprintf(`\x%02x`, rest[2]&31), 3)
	case c == 'x' || c == 'u':
		return t.code(rest)
	case c == 'p' || c == 'P':
		return t.property(rest)
	case strings.IndexByte(`^$\.*+?()[]{}|/-`, c) >= 0:
		t.put(`\`+string(c), 2)
		if c == '/' {
			return nil
		}
	default:
		return fmt.Errorf("has the escape %s, which means nothing", rest[:2])
	}
	return nil
}

// code translates the number of a character.
func (t *translator) code(rest string) error {
	n := 4 // digits
	if rest[1] == 'x' {
		n = 2
	}
	text := rest[2:]
	skip := 2 + n
	if strings.HasPrefix(text, "{") && rest[1] == 'u' {
		end := strings.IndexByte(text, '}')
		if end < 2 || end > 7 {
			return fmt.Errorf("has a \\u{ that is not right")
		}
		text, n, skip = text[1:end], end-1, end+3
	}
	if len(text) < n {
		return fmt.Errorf("has a \\%c that is not right", rest[1])
	}
	v, err := strconv.ParseUint(text[:n], 16, 32)
	if err != nil || v > utf8.MaxRune {
		return fmt.Errorf("has a \\%c that is not right", rest[1])
	}
	// Two halves of one character.
	if low := rest[min(skip, len(rest)):]; v >= 0xd800 && v < 0xdc00 && len(low) >= 6 && low[:2] == `\u` {
		if second, err := strconv.ParseUint(low[2:6], 16, 32); err == nil && second >= 0xdc00 && second < 0xe000 {
			v, skip = 0x10000+(v-0xd800)<<10+second-0xdc00, skip+6
		}
	}
	t.put(fmt.Sprintf(`\x{%x}`, v), skip)
	return nil
}

// property translates a property of characters, such as \p{Letter}.
func (t *translator) property(rest string) error {
	end := strings.IndexByte(rest, '}')
	if len(rest) < 4 || rest[2] != '{' || end < 4 {
		return fmt.Errorf("has a \\%c without the name of a property", rest[1])
	}
	name := rest[3:end]
	if short, ok := shortNames[name]; ok {
		name = short
	}
	for _, prefix := range []string{"Script=", "sc=", "General_Category=", "gc="} {
		name = strings.TrimPrefix(name, prefix)
	}
	t.put(rest[:3]+name+"}", end+1)
	return nil
}

// shortNames are the short forms of general categories that Go's regexp knows.
var shortNames = map[string]string{
	"Letter": "L", "Lowercase_Letter": "Ll", "Uppercase_Letter": "Lu", "Number": "N", "Decimal_Number": "Nd", "digit": "Nd",
	"Punctuation": "P", "punct": "P", "Symbol": "S", "Separator": "Z", "Mark": "M",
}
