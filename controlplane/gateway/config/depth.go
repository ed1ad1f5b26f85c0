package config

// TooDeep guesses, on the safe side, whether the nesting of a YAML text could exhaust the
// stack of its reader. It takes time linear in b, and no memory.
//
// What stands in quotes nests nothing. A text is in quotes where these are sure to open
// and close it: behind one of [ { , or a colon or dash before a value, or first on a line that is in no
// bracket, and on that line.
// Quotes elsewhere may be part of a text, as in it's, so what they enclose counts; and
// from one on that its line does not close, everything counts.
func TooDeep(b []byte) bool {
	const most = 100
	depth, dashes := 0, 0
	q := quoteFinder{begins: true, indent: true}
	for i := 0; i < len(b); i++ {
		if end := q.skip(b, i, depth); end > i {
			i = end
			continue
		}
		switch b[i] {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case '\n':
			dashes = 0
		case '-', '?', ':':
			dashes++
		}
		if depth > most || dashes > 8*most {
			return true
		}
	}
	return false
}

// quoteFinder knows where in a YAML text a quote is sure to open one.
type quoteFinder struct {
	begins bool // a value begins at the next byte that is no space
	indent bool // there are but spaces and dashes before on this line
	quoted bool // the byte before closed a quote
	unsure bool // a quote was not closed: nothing is sure any more
	until  int  // up to here quotes mean nothing
}

// skip returns the index of the quote that closes the one at i, if that is sure to open a
// text, else i. Depth is how many brackets are open.
func (q *quoteFinder) skip(b []byte, i, depth int) int {
	c := b[i]
	space := i == 0 || isSpace(b[i-1])
	if (c == '"' || c == '\'') && !q.unsure && i >= q.until && (q.begins || space) {
		end := closing(b, i)
		switch {
		case end < 0:
			q.unsure = true
		case q.begins || q.indent && depth == 0: // of no flow: brackets in a text that is not quoted nest nothing either
			q.begins, q.indent, q.quoted = false, false, true
			return end
		default:
			q.until = end + 1
		}
	}
	next := i+1 == len(b) || isSpace(b[i+1])
	switch {
	case c == '\n':
		q.indent = true
	case isSpace(c):
	case c == '[' || c == '{' || c == ',' || c == ':' && (next || q.quoted) || c == '-' && next && q.indent && depth == 0:
		q.begins, q.indent = true, q.indent && c == '-'
	case c == '#' && space: // the rest of the line is a comment, or of a text
		for q.until = i; q.until < len(b) && b[q.until] != '\n'; q.until++ {
		}
	default:
		q.begins, q.indent = false, false
	}
	q.quoted = false
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// closing is the index of the quote that closes the one at i on the same line; -1: none.
func closing(b []byte, i int) int {
	quote := b[i]
	for i++; i < len(b) && b[i] != '\n'; i++ {
		switch {
		case b[i] == '\\' && quote == '"':
			i++
		case b[i] != quote:
		case quote == '\'' && i+1 < len(b) && b[i+1] == '\'':
			i++
		default:
			return i
		}
	}
	return -1
}
