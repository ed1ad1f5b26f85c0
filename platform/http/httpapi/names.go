package httpapi

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/decision"
)

// maxDepth bounds the nesting of a JSON body.
const maxDepth = 64

// CheckJSON reports what encoding/json lets through in one JSON value, and what
// it does not: a name that stands twice in one object, nesting beyond 64, text
// that is no UTF-8 or half a surrogate pair, which would be stored as U+FFFD, and
// anything after the value. Two readers of such a text may see two different
// requests.
//
// It takes time linear in raw, and memory of at most 24 bytes for each of raw's
// besides 32 KiB, nearly all of it for objects with many names. It stops after
// decision.MaxDetails details.
func CheckJSON(raw []byte) []decision.Detail {
	details, _ := check(raw, nil)
	return bounded(details)
}

// bounded puts details in the order of their fields and cuts them.
func bounded(list []decision.Detail) []decision.Detail {
	slices.SortStableFunc(list, func(a, b decision.Detail) int { return strings.Compare(a.Field, b.Field) })
	return decision.Bounded(list)
}

// check is CheckJSON, and reports fields of objects that t, or a part of it, does not
// have, and values that do not fit it, each by its place such as clips[2].in; t is nil:
// any may stand there. Values of types that read themselves are read once for it. It
// returns one detail more than an answer may have at most, and whether raw is JSON at all.
func check(raw []byte, t reflect.Type) (details []decision.Detail, valid bool) {
	w := walker{raw: raw, due: t}
	bad := jsonscan.Validate(raw, maxDepth)
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		w.add("is missing", "a JSON object")
		return w.details, false
	case bad == nil:
		w.whole = true
		w.walk(len(raw))
		return w.details, true
	case bad.Issue == jsonscan.IssueUTF8:
		w.walk(bad.Offset)
		w.add("is not valid JSON: "+bad.Issue+at(raw, bad.Offset), "text in UTF-8")
	case bad.Issue == jsonscan.IssueTrailing:
		w.add("has more after the first JSON value", "one object")
	default:
		w.add("is not valid JSON: "+bad.Issue+at(raw, bad.Offset), "object")
	}
	return w.details, false
}

// at names a place in raw as editors do: its line, and its column in characters, both from 1.
func at(raw []byte, offset int) string {
	before := raw[:min(offset, len(raw))]
	line := bytes.Count(before, []byte("\n"))
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return " at line " + strconv.Itoa(line+1) + ", column " + strconv.Itoa(column+1)
}

// walker goes once through a text that is valid JSON, up to where it stops.
type walker struct {
	raw     []byte
	stack   []level      // of the containers that are open
	due     reflect.Type // of the value that comes next; nil: any
	whole   bool         // the text is JSON to its end: its values are looked at
	details []decision.Detail
}

// level is a container that is open.
type level struct {
	object bool
	named  bool         // the name of the member has been read
	of     *shape       // of an object's members; nil: any
	elem   reflect.Type // of an array's elements, or a map's values
	name   []byte       // of the member, as it is written between its quotes
	index  int          // of the element
	from   int          // where the container begins
	self   reflect.Type // that reads the container by itself; nil: none
	seen   names
}

// walk reads up to end. It stops early when there are more details than an answer
// has room for.
func (w *walker) walk(end int) {
	for i := 0; i < end && len(w.details) <= decision.MaxDetails; i++ {
		switch w.raw[i] {
		case '{', '[':
			w.open(i)
		case '}', ']':
			w.close(i + 1)
		case ',':
			w.next()
		case '"':
			i = w.text(i+1, end)
		case ' ', '\t', '\n', '\r', ':':
		default:
			i = w.scalar(i, end)
		}
	}
}

// scalar reads a number, true, false or null, and returns where its last byte is.
func (w *walker) scalar(from, end int) int {
	i := from
	for i < end && !strings.ContainsRune(",]} \t\r\n", rune(w.raw[i])) {
		i++
	}
	w.value(from, i)
	return i - 1
}

// open enters the container at from, whose type is due.
func (w *walker) open(from int) {
	object := w.raw[from] == '{'
	l := level{object: object, from: from}
	t := read(w.due)
	if self := readsItself(w.due); self != nil {
		l.self = self
	} else {
		w.value(from, from+1)
	}
	switch {
	case t == nil:
	case object && t.Kind() == reflect.Struct:
		l.of = shapeOf(t)
	case object && t.Kind() == reflect.Map, !object && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		l.elem = t.Elem()
	}
	w.due = l.elem
	w.stack = append(w.stack, l)
}

// close leaves a container that ends before end.
func (w *walker) close(end int) {
	l := w.stack[len(w.stack)-1]
	w.stack = w.stack[:len(w.stack)-1]
	if l.self != nil {
		w.try(l.self, l.from, end)
	}
}

// next goes on to the next member or element.
func (w *walker) next() {
	l := &w.stack[len(w.stack)-1]
	l.named, w.due = false, l.elem
	l.index++
}

// text reads a string from behind its first quote and returns where its last one
// is, or end.
func (w *walker) text(from, end int) int {
	i, lone, escaped := from, false, false
	for ; i < end && w.raw[i] != '"'; i++ {
		if w.raw[i] == '\\' {
			var n int
			n, lone = escape(w.raw[i:end], lone)
			i, escaped = i+n-1, true
		}
	}
	name := false
	if len(w.stack) > 0 && i < end {
		if l := &w.stack[len(w.stack)-1]; l.object && !l.named {
			l.named, l.name, name = true, w.raw[from:i], true
		}
	}
	switch {
	case lone:
		w.add("has half a surrogate pair, which is no character", "both halves, or the character itself")
	case name:
		w.member(escaped)
	case i < end:
		w.value(from-1, i+1)
	}
	return i
}

// escape returns the length of the escape that b begins with, and whether it, or
// one before it, is half a surrogate pair that stands alone.
func escape(b []byte, lone bool) (n int, is bool) {
	if len(b) < 6 || b[1] != 'u' {
		return 2, lone
	}
	r, next := jsonscan.Rune(b, 0)
	return next, lone || r >= 0xd800 && r < 0xe000
}

// member judges the name that was just read.
func (w *walker) member(escaped bool) {
	l := &w.stack[len(w.stack)-1]
	name := l.name
	if escaped {
		name = jsonscan.Append(nil, name)
	}
	if !l.seen.add(name) {
		w.add("is given twice", "one member of this name")
		return
	}
	if l.of == nil {
		return
	}
	f, ok := l.of.fields[string(name)]
	if !ok {
		w.add("is not a known field", l.of.expected(name))
		return
	}
	w.due = f.typ
}

// add notes that the field where the walk stands is wrong.
func (w *walker) add(issue, expected string) {
	w.details = append(w.details, decision.Detail{Field: w.field(), Issue: issue, Expected: expected})
}

// field is the path of the member or element where the walk stands, cut: body at
// the top.
func (w *walker) field() string {
	var path []byte
	for i := range w.stack {
		if len(path) > decision.MaxName { // the rest would be cut off
			break
		}
		l := &w.stack[i]
		if !l.object {
			path = strconv.AppendInt(append(path, '['), int64(l.index), 10)
			path = append(path, ']')
			continue
		}
		if !l.named {
			break
		}
		if len(path) > 0 {
			path = append(path, '.')
		}
		path = jsonscan.Append(path, l.name[:jsonscan.Cut(l.name, decision.MaxName+1)])
	}
	if len(path) == 0 {
		return "body"
	}
	return decision.Cut(string(path), decision.MaxName)
}

// names is the set of an object's names. Few are kept in a list, so that a small
// object takes no memory.
type names struct {
	few  [8][]byte
	n    int
	many map[string]struct{}
}

// add adds name, and reports whether it was not there. It keeps name.
func (s *names) add(name []byte) bool {
	if s.many != nil {
		if _, there := s.many[string(name)]; there {
			return false
		}
		s.many[string(name)] = struct{}{}
		return true
	}
	for _, have := range s.few[:s.n] {
		if string(have) == string(name) {
			return false
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = name
		s.n++
		return true
	}
	s.many = make(map[string]struct{}, 4*len(s.few))
	for _, have := range s.few {
		s.many[string(have)] = struct{}{}
	}
	s.many[string(name)] = struct{}{}
	return true
}
