package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Text is one file of a document.
type Text struct {
	Name string // as it is shown in faults
	YAML []byte
}

// listKeys are the lists of a document, with the field by which an element is known
// in another file; "": it is a text, which is its own name.
var listKeys = map[string]string{"certificates": "name", "issuers": "issuer", "classes": "name", "plans": "name", "scopes": "", "products": "name", "routes": "name"}

// Merge makes one document of layers of files. Files of one layer are joined: their
// lists follow each other, and nothing may be said twice. A layer is laid over those
// before it: an object of a name that is there changes that object, field by field
// as in a JSON merge patch (RFC 7396: objects are merged, null removes, lists and
// all else are replaced), and other objects are added. remove takes away objects
// of the layers before; what it does not find there stays, for Expand. Files that
// include names are layers below that of the file: see Includes.
//
// Faults are those of ParseJSON, with fields of the merged document, of which
// Sources knows the file and line. It takes time and memory linear in the texts,
// apart from what ParseYAML says, and once more for each name in remove that ends
// in *.
func Merge(layers [][]Text) (Document, Sources, error) {
	m := merger{scalars: map[string]json.RawMessage{}, lists: map[string][]*element{}, at: map[string]*element{}, words: map[string][]origin{}, src: Sources{scalars: map[string]origin{}}}
	for i, layer := range layers {
		m.layer = i
		for _, text := range layer {
			if err := m.file(text); err != nil {
				return Document{}, m.sources(), err
			}
		}
	}
	d, err := ParseJSON(m.document())
	list := append(m.faults, faults(err)...)
	if err != nil && len(list) == 0 {
		return d, m.sources(), err
	}
	return d, m.sources(), apierror.Invalid(list)
}

// Includes are the files and folders that a document includes, and not what is built
// in. A text that cannot be read includes none: Merge says why.
func Includes(text []byte) (list []string) {
	js, _, err := readYAML(text)
	var d struct{ Include []string }
	if err != nil || json.Unmarshal(js, &d) != nil {
		return nil
	}
	return slices.DeleteFunc(d.Include, func(name string) bool { return !IsFile(name) })
}

// IsFile reports whether what a document includes is a file or folder: it ends in
// .yaml, .yml or a slash.
func IsFile(include string) bool {
	return strings.HasSuffix(include, ".yaml") || strings.HasSuffix(include, ".yml") || strings.HasSuffix(include, "/")
}

// merger is Merge at work.
type merger struct {
	layer   int
	scalars map[string]json.RawMessage // all that is no list
	lists   map[string][]*element      // gone elements are nil
	at      map[string]*element        // by list and name
	include []string
	remove  []string            // what was not found in layers before
	words   map[string][]origin // of include and remove
	src     Sources
	faults  []decision.Detail
}

// element is an object of a list, or a scope.
type element struct {
	json    json.RawMessage
	layer   int // that said it last
	index   int // in its list
	origins []origin
}

func (m *merger) file(text Text) error {
	js, src, err := readYAML(text.YAML)
	if err != nil {
		return InFile{text.Name, err}
	}
	m.src.files = append(m.src.files, sourceFile{text.Name, src})
	at := len(m.src.files) - 1
	var fields map[string]json.RawMessage
	if json.Unmarshal(js, &fields) != nil {
		return InFile{text.Name, apierror.Errorf(decision.InvalidRequest, "The document is not a list of fields, such as products and routes.")}
	}
	for i, name := range m.names("include", fields["include"]) {
		if IsFile(name) {
			continue // the caller has read it
		}
		m.include = append(m.include, name)
		m.words["include"] = append(m.words["include"], origin{file: at, index: i})
	}
	for i, name := range m.names("remove", fields["remove"]) {
		if !m.removeName(name) {
			m.remove = append(m.remove, name)
			m.words["remove"] = append(m.words["remove"], origin{file: at, index: i})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var list []json.RawMessage
		_, isList := listKeys[name]
		switch {
		case name == "include" || name == "remove":
		case isList && json.Unmarshal(fields[name], &list) == nil && list != nil:
			if m.lists[name] == nil {
				m.lists[name] = []*element{}
			}
			for i, js := range list {
				m.add(name, js, origin{file: at, index: i})
			}
		default:
			m.scalar(name, fields[name], at)
		}
	}
	return nil
}

// names reads a list of texts; what is none is left for ParseJSON.
func (m *merger) names(field string, js json.RawMessage) (list []string) {
	if js != nil && json.Unmarshal(js, &list) != nil {
		m.scalars[field] = js
	}
	return list
}

// removeName takes away what layers before said, if it is there.
func (m *merger) removeName(name string) (found bool) {
	prefix, wild := strings.CutSuffix(name, "*")
	if !wild {
		return m.removeAt(name)
	}
	for key := range m.at {
		if strings.HasPrefix(key, prefix) && m.removeAt(key) {
			found = true
		}
	}
	return found
}

// removeAt takes away the object of list.name, if a layer before said it.
func (m *merger) removeAt(key string) bool {
	e := m.at[key]
	if e == nil || e.layer >= m.layer {
		return false
	}
	list, _, _ := strings.Cut(key, ".")
	m.lists[list][e.index] = nil
	delete(m.at, key)
	return true
}

// scalar notes a field that is no list.
func (m *merger) scalar(name string, js json.RawMessage, file int) {
	before, said := m.src.scalars[name]
	if said && before.layer == m.layer {
		m.faults = append(m.faults, decision.Detail{Field: name, Issue: "is said twice: also " + m.src.place(before, name), Expected: "one of the two"})
	}
	now := origin{file: file, layer: m.layer}.scalar()
	m.src.scalars[name] = now
	if said {
		js = patched(m.scalars[name], js)
	}
	m.scalars[name] = js
}

// add adds an element to a list, or changes the one of its name.
func (m *merger) add(list string, js json.RawMessage, from origin) {
	name := nameIn(js, listKeys[list])
	key := list + "." + name
	from.layer = m.layer
	old := m.at[key]
	if name == "" || old == nil {
		e := &element{js, m.layer, len(m.lists[list]), []origin{from}}
		m.lists[list] = append(m.lists[list], e)
		if name != "" {
			m.at[key] = e
		}
		return
	}
	if old.layer == m.layer {
		first := old.origins[len(old.origins)-1]
		field := fmt.Sprintf("%s[%d]", list, first.index)
		e := &element{js, m.layer, len(m.lists[list]), []origin{from}}
		m.faults = append(m.faults, decision.Detail{Field: strings.TrimSuffix(fmt.Sprintf("%s[%d].%s", list, e.index, listKeys[list]), "."),
			Issue: "is given twice: also " + m.src.place(first, field), Expected: "another name"})
		m.lists[list] = append(m.lists[list], e)
		return
	}
	old.json, old.layer, old.origins = patched(old.json, js), m.layer, append(old.origins, from)
}

// nameIn is the name of an element; "" when it has none.
func nameIn(js json.RawMessage, field string) (name string) {
	if field == "" {
		_ = json.Unmarshal(js, &name) // what is no text has no name
		return name
	}
	var o map[string]json.RawMessage
	if json.Unmarshal(js, &o) == nil {
		_ = json.Unmarshal(o[field], &name)
	}
	return name
}

// patched is old changed by patch, as RFC 7396 says.
func patched(old, patch json.RawMessage) json.RawMessage {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(patch, &b) != nil || b == nil {
		return patch
	}
	if json.Unmarshal(old, &a) != nil || a == nil {
		a = map[string]json.RawMessage{}
	}
	for name, v := range b {
		if bytes.Equal(bytes.TrimSpace(v), []byte("null")) {
			delete(a, name)
			continue
		}
		a[name] = patched(a[name], v)
	}
	out, err := json.Marshal(a)
	if err != nil {
		return patch // what was read is JSON
	}
	return out
}

// document is all of it as JSON, after which the places of elements are final.
func (m *merger) document() []byte {
	out := maps.Clone(m.scalars)
	set := func(name string, v any) {
		if b, err := json.Marshal(v); err == nil { // what was read is JSON
			out[name] = b
		}
	}
	for name, list := range m.lists {
		m.lists[name] = slices.DeleteFunc(list, func(e *element) bool { return e == nil })
		texts := make([]json.RawMessage, len(m.lists[name]))
		for i, e := range m.lists[name] {
			texts[i] = e.json
		}
		set(name, texts)
	}
	if m.include != nil {
		set("include", m.include)
	}
	if m.remove != nil {
		set("remove", m.remove)
	}
	b, err := json.Marshal(out)
	if err != nil {
		return []byte("{}")
	}
	return b
}
