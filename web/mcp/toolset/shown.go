package toolset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

// Bounds of what is shown of an answer.
const (
	maxDeep    = 64   // levels of an answer that is taken apart
	maxCutText = 1024 // characters of a text that there is no room for
	maxTold    = 20   // lists that are said to be cut, and fields that are missing
	slack      = 4096 // bytes for what stands behind a list that has been cut
)

// Part is how much of a list is shown.
type Part struct {
	Shown int `json:"shown"`
	Of    int `json:"of"`
}

// Shown is what is shown of an answer.
type Shown struct {
	Text []byte
	// Lists are those that are cut, by their paths, such as data.
	Lists map[string]Part
	// Texts are cut, and Members left out.
	Texts, Members int
	// Missing are the fields that were asked for and that the answer has nowhere.
	Missing []string
}

// Cut reports whether anything is missing for want of room.
func (s Shown) Cut() bool { return len(s.Lists) > 0 || s.Texts > 0 || s.Members > 0 }

// Show returns body, an answer in JSON, with the given fields alone (none: with all), in
// about most bytes, 4 KiB more at the utmost but for a text of 1,024 characters: of a list
// that has no room, the first items are shown, and what stands behind it. ok is false when
// body is no JSON, or is nested too deep.
//
// It takes time linear in body for each of its levels, 64 at most, and memory for what it
// returns.
func Show(body []byte, fields []string, most int) (s Shown, ok bool) {
	if jsonscan.Validate(body, maxDeep) != nil {
		return Shown{}, false
	}
	w := shower{b: body, most: most, s: Shown{Lists: map[string]Part{}}}
	var want *wanted
	if len(fields) > 0 {
		want = &wanted{}
		for _, f := range fields {
			want.add(strings.Split(f, "."))
		}
	}
	w.value(jsonscan.Root(body), want, "")
	w.s.Text = w.out
	if want != nil {
		want.missing("", &w.s.Missing)
	}
	return w.s, true
}

// wanted is a field that was asked for, or one around such.
type wanted struct {
	whole         bool
	inner         map[string]*wanted
	seen, entered bool // the answer has it; has an object there
}

func (w *wanted) add(path []string) {
	if len(path) == 0 {
		w.whole = true
		return
	}
	if w.inner == nil {
		w.inner = map[string]*wanted{}
	}
	next := w.inner[path[0]]
	if next == nil {
		next = &wanted{}
		w.inner[path[0]] = next
	}
	next.add(path[1:])
}

// missing gathers the fields that no object had where it should have, maxTold at most. It
// takes time linear in the fields, but for sorting the names of each.
func (w *wanted) missing(path string, out *[]string) {
	for _, name := range slices.Sorted(maps.Keys(w.inner)) {
		if len(*out) == maxTold {
			return
		}
		next, at := w.inner[name], strings.TrimPrefix(path+"."+name, ".")
		if w.entered && !next.seen {
			*out = append(*out, at)
			continue // what would stand in it is missing too
		}
		next.missing(at, out)
	}
}

// shower writes what is shown.
type shower struct {
	b    []byte
	out  []byte
	most int
	s    Shown
}

// full reports whether no more items are shown once n bytes are added.
func (w *shower) full(n int) bool { return len(w.out)+n > w.most }

// value writes one value. want is nil where all of it is wanted.
func (w *shower) value(v jsonscan.Value, want *wanted, path string) {
	if want != nil && want.whole {
		want = nil
	}
	switch v.Kind(w.b) {
	case jsonscan.Object:
		w.object(v, want, path)
	case jsonscan.Array:
		w.array(v, want, path)
	default:
		w.scalar(v)
	}
}

// object writes the members that are wanted, as long as there is room.
func (w *shower) object(v jsonscan.Value, want *wanted, path string) {
	w.out = append(w.out, '{')
	first := true
	if want != nil {
		want.entered = true
	}
	for m := jsonscan.Members(w.b, v); m.Step(); {
		var next *wanted
		name := m.Name
		if want != nil {
			if next = want.inner[string(jsonscan.Append(nil, name))]; next == nil {
				continue
			}
			next.seen = true
		}
		if w.full(len(name) - slack) {
			w.s.Members++
			continue
		}
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.out = append(append(append(w.out, '"'), name...), '"', ':')
		w.value(m.Value, next, w.within(path, name))
	}
	w.out = append(w.out, '}')
}

// within is the path of a member, in few bytes.
func (w *shower) within(path string, name []byte) string {
	const longest = 100
	if len(path)+len(name) > longest {
		return path
	}
	return strings.TrimPrefix(path+"."+string(name), ".")
}

// array writes the first items, at least one.
func (w *shower) array(v jsonscan.Value, want *wanted, path string) {
	w.out = append(w.out, '[')
	var p Part
	for m := jsonscan.Members(w.b, v); m.Step(); p.Of++ {
		if p.Shown > 0 && w.full(0) {
			continue // it is counted
		}
		if p.Shown > 0 {
			w.out = append(w.out, ',')
		}
		p.Shown++
		w.value(m.Value, want, path)
	}
	w.out = append(w.out, ']')
	if p.Shown == p.Of {
		return
	}
	if path == "" {
		path = "answer"
	}
	if told, ok := w.s.Lists[path]; ok || len(w.s.Lists) < maxTold {
		w.s.Lists[path] = Part{told.Shown + p.Shown, told.Of + p.Of}
	}
}

// scalar writes a text, number or word; a text for which there is no room is cut.
func (w *shower) scalar(v jsonscan.Value) {
	if v.To-v.From <= maxCutText || !w.full(v.To-v.From) {
		w.out = append(w.out, w.b[v.From:v.To]...)
		return
	}
	w.s.Texts++
	if v.Kind(w.b) != jsonscan.String {
		w.out = append(w.out, "null"...)
		return
	}
	text := v.Text(w.b)
	w.out = append(append(append(w.out, '"'), text[:jsonscan.Cut(text, maxCutText)]...), `…"`...)
}

// Bounds of the argument fields.
const (
	maxAsked     = 50
	maxAskedPath = 200 // bytes
)

// fieldsArgument chooses what is shown of an answer.
const fieldsArgument = "fields"

// fieldsSchema describes it.
func fieldsSchema() object {
	return object{"type": "array", "items": object{"type": "string"}, "description": "Show only these of the answer, such as data.id"}
}

// fieldsOf reads the argument fields.
func fieldsOf(v any) ([]string, error) {
	if one, ok := v.(string); ok {
		v = []any{one}
	}
	list, ok := v.([]any)
	if v == nil {
		return nil, nil
	}
	bad := fmt.Errorf("at most %d paths of %d bytes", maxAsked, maxAskedPath)
	if !ok || len(list) > maxAsked {
		return nil, bad
	}
	var out []string
	for _, item := range list {
		path, ok := item.(string)
		if !ok || path == "" || len(path) > maxAskedPath {
			return nil, bad
		}
		out = append(out, path)
	}
	return out, nil
}

// Note says in JSON what is not shown, and how to see it with t. It is nil when all is
// shown that was asked for.
func (t Tool) Note(s Shown) ([]byte, error) {
	if !s.Cut() && len(s.Missing) == 0 {
		return nil, nil
	}
	note := object{}
	if len(s.Lists) > 0 {
		note["lists"] = s.Lists
	}
	if s.Texts > 0 {
		note["texts"] = s.Texts
	}
	if s.Members > 0 {
		note["members"] = s.Members
	}
	if len(s.Missing) > 0 {
		note["not_in_answer"] = s.Missing
	}
	if s.Cut() {
		note["rest"] = t.rest(s)
	}
	return json.Marshal(note)
}

// rest says how to see what is cut.
func (t Tool) rest(s Shown) string {
	var ways []string
	if first, ok := s.Lists["data"]; ok && t.has("limit") {
		ways = append(ways, fmt.Sprintf("call again with limit %d, and go on from page to page", first.Shown))
	}
	if t.has(fieldsArgument) {
		ways = append(ways, "name the fields that you need in fields")
	}
	if len(ways) == 0 {
		return "Ask for one object instead of many."
	}
	return "To see the rest, " + strings.Join(ways, ", or ") + "."
}

// has reports whether t takes an argument of that name.
func (t Tool) has(name string) bool {
	return slices.ContainsFunc(t.Arguments, func(a Argument) bool { return a.Name == name })
}
