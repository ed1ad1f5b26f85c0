package jsonscan

import "bytes"

// Kind tells the six kinds of JSON value apart by their first byte.
type Kind byte

// The kinds.
const (
	Object Kind = '{'
	Array  Kind = '['
	String Kind = '"'
	Number Kind = '0'
	Bool   Kind = 't'
	Null   Kind = 'n'
)

// Value is a value's place in the text: b[From:To], quotes and brackets
// included.
type Value struct{ From, To int }

// Kind returns the kind of the value.
func (v Value) Kind(b []byte) Kind {
	switch c := b[v.From]; c {
	case '{', '[', '"', 't', 'n':
		return Kind(c)
	case 'f':
		return Bool
	default:
		return Number
	}
}

// Text returns what stands between the quotes of a string, escapes untouched.
func (v Value) Text(b []byte) []byte { return b[v.From+1 : v.To-1] }

// Root returns the place of the document's value.
func Root(b []byte) Value {
	to := len(b)
	for to > 0 && (b[to-1] == ' ' || b[to-1] == '\n' || b[to-1] == '\t' || b[to-1] == '\r') {
		to--
	}
	return Value{Space(b, 0), to}
}

// Member is one member of an object or element of an array.
type Member struct {
	Value
	Name  []byte // between the quotes, escapes untouched; nil in an array
	Start int    // of the member: its name's quote, or its value in an array
	Next  int    // Start of the member after it, -1 if it is the last
}

// Walk steps through the members of an object or the elements of an array.
type Walk struct {
	Member
	b      []byte
	object bool
}

// Members starts a walk through v, which must be an object or an array.
func Members(b []byte, v Value) Walk {
	w := Walk{b: b, object: b[v.From] == '{'}
	w.Next = Space(b, v.From+1)
	if w.Next == v.To-1 {
		w.Next = -1
	}
	return w
}

// Step goes to the next member, if there is one.
func (w *Walk) Step() bool {
	if w.Next < 0 {
		return false
	}
	w.Start, w.Name = w.Next, nil
	at := w.Start
	if w.object {
		close := end(w.b, at)
		w.Name = w.b[at+1 : close-1]
		at = Space(w.b, Space(w.b, close)+1) // the colon stands between
	}
	w.Value = Value{at, end(w.b, at)}
	// Next is found here and not at the next step: whoever removes a member
	// must know where the one behind it begins.
	w.Next = -1
	if i := Space(w.b, w.To); w.b[i] == ',' {
		w.Next = Space(w.b, i+1)
	}
	return true
}

// Space returns the index of the first byte at or after i that is not white
// space.
func Space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// end returns the index behind the value that begins at i.
func end(b []byte, i int) int {
	switch b[i] {
	case '"':
		return endString(b, i)
	case '{', '[':
		return endContainer(b, i)
	}
	for i < len(b) {
		switch b[i] {
		case ',', ']', '}', ' ', '\n', '\t', '\r', ':':
			return i
		}
		i++
	}
	return i
}

// endString looks for a quote that an even number of backslashes precedes.
func endString(b []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(b[i:], '"')
		slash := i
		for b[slash-1] == '\\' {
			slash--
		}
		if (i-slash)%2 == 0 {
			return i + 1
		}
	}
}

// endContainer counts brackets of both shapes alike: the text is known to pair
// them rightly.
func endContainer(b []byte, i int) int {
	// The text is valid, so the depth comes back to 0 before the end.
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = endString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
}
