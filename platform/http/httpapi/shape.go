package httpapi

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"sluice.dev/sluice/filters/decision"
)

// shape is what a struct reads from a JSON object.
type shape struct {
	fields map[string]field
	names  []string // sorted
}

// field is one of a struct's fields.
type field struct {
	typ   reflect.Type
	index []int // see reflect.Value.FieldByIndex
}

// shapes keeps the shape of each type that was asked for.
var shapes sync.Map

// shapeOf returns the fields of a struct that have a name in JSON; those of
// structs within it that have none are its own.
func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := &shape{fields: map[string]field{}}
	s.gather(t, nil)
	s.names = slices.Sorted(maps.Keys(s.fields))
	shapes.Store(t, s)
	return s
}

func (s *shape) gather(t reflect.Type, above []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clip(above), i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			s.gather(f.Type, index)
		case name != "" && name != "-":
			s.fields[name] = field{f.Type, index}
		}
	}
}

// What a type does that reads JSON, or a string of it, by itself.
var (
	reader     = reflect.TypeFor[json.Unmarshaler]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// read returns the type behind t's pointers; nil when any text may stand for it,
// because it reads JSON by itself or is an interface.
func read(t reflect.Type) reflect.Type {
	for t != nil {
		if p := reflect.PointerTo(t); p.Implements(reader) || p.Implements(textReader) {
			return nil
		}
		if t.Kind() != reflect.Pointer {
			return t
		}
		t = t.Elem()
	}
	return nil
}

// maxExpected bounds what a detail says of the names that are known, in bytes.
const maxExpected = 160

// expected says which names are known: all of them, or when they are too many
// those that are most like name.
func (s *shape) expected(name []byte) string {
	if len(s.names) == 0 {
		return "no field"
	}
	if all := "one of " + strings.Join(s.names, ", "); len(all) <= maxExpected {
		return all
	}
	near := slices.Clone(s.names)
	wrong := decision.Cut(string(name[:min(len(name), maxLikeness)]), maxLikeness)
	far := make(map[string]int, len(near))
	for _, n := range near {
		far[n] = distance(wrong, n)
	}
	slices.SortStableFunc(near, func(a, b string) int { return far[a] - far[b] })
	text := "a known field, such as " + near[0]
	for _, n := range near[1:min(len(near), 3)] {
		text += ", " + n
	}
	return decision.Cut(text, maxExpected)
}

// maxLikeness bounds the bytes of two names that are compared.
const maxLikeness = 32

// distance is how many letters must be changed, put in or left out to make b of
// a, both cut (Levenshtein). It takes at most maxLikeness² steps.
func distance(a, b string) int {
	a, b = strings.ToLower(a[:min(len(a), maxLikeness)]), strings.ToLower(b[:min(len(b), maxLikeness)])
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
