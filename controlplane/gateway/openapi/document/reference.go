package document

import (
	"net/url"
	"path"
	"strconv"
	"strings"
)

// schemaRef is how the one form refers to a schema.
const schemaRef = "#/components/schemas/"

// reader reads one document with the files beside it.
type reader struct {
	open    Open
	files   map[string]*file // by path from the document's folder; "" is the document
	bytes   int              // that files may still have
	left    int              // values that may still be written
	err     error            // why the document is refused
	names   map[string]string
	taken   map[string]bool
	schemas Object
	due     []target // schemas that have a name but are not written yet
	notes   []Note
	noted   map[string]int

	siblings bool // what stands beside a $ref counts: 3.1
}

// file is one of the files that a document is made of.
type file struct {
	name string // "" for the document itself
	root any
	two  bool // Swagger 2
}

// target is a place that references lead to.
type target struct {
	file    *file
	pointer string // "/components/schemas/Pet"
	node    any
	name    string // of the schema that it becomes
}

// spend counts a value that is written.
func (r *reader) spend(n int) bool {
	if r.left -= n; r.left < 0 && r.err == nil {
		r.err = errLarge
	}
	return r.err == nil
}

// maxHops bounds a chain of references.
const maxHops = 50

// resolve follows the reference that node may be, to a node that is none. What is
// not there is an empty object.
func (r *reader) resolve(f *file, node any) (*file, Object) {
	o, _ := node.(Object)
	for range maxHops {
		ref, ok := o["$ref"].(string)
		if !ok {
			if o == nil {
				o = Object{}
			}
			return f, o
		}
		t, ok := r.find(f, ref)
		if !ok {
			return f, Object{}
		}
		f = t.file
		o, _ = t.node.(Object)
	}
	r.note(str(o["$ref"]), "references that lead in a circle: taken as empty")
	return f, Object{}
}

// find returns what a reference in f leads to.
func (r *reader) find(f *file, ref string) (target, bool) {
	where, fragment, _ := strings.Cut(ref, "#")
	if where != "" {
		var ok bool
		if f, ok = r.beside(f, where, ref); !ok {
			return target{}, false
		}
	}
	if fragment != "" && fragment[0] != '/' {
		r.note(ref, "references by an anchor: taken as anything")
		return target{}, false
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	fragment = strings.TrimSuffix(fragment, "/")
	node := f.root
	for i, step := range strings.Split(fragment, "/") {
		if i == 0 {
			continue
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := node.(type) {
		case Object:
			node = v[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(v) {
				n, v = 0, []any{nil}
			}
			node = v[n]
		default:
			node = nil
		}
	}
	if node == nil {
		r.note(ref, "references that lead nowhere: taken as anything")
		return target{}, false
	}
	return target{file: f, pointer: fragment, node: node}, true
}

// beside returns the file that a reference in f names.
func (r *reader) beside(f *file, where, ref string) (*file, bool) {
	if u, err := url.Parse(where); err != nil || u.Scheme != "" || u.Host != "" || strings.HasPrefix(where, "/") {
		r.note(ref, "references to other hosts or to whole paths, which are not followed: taken as anything")
		return nil, false
	}
	if plain, err := url.PathUnescape(where); err == nil {
		where = plain
	}
	name := path.Join(path.Dir(f.name), where)
	if known, ok := r.files[name]; ok {
		return known, known != nil
	}
	r.files[name] = nil
	if r.open == nil || strings.HasPrefix(name, "../") || len(r.files) > maxFiles {
		r.note(ref, "references to files that are not beside the document: taken as anything")
		return nil, false
	}
	text, err := r.open(name, int64(r.bytes))
	if err != nil || len(text) > r.bytes {
		r.note(ref, "references to files that cannot be read: taken as anything")
		return nil, false
	}
	r.bytes -= len(text)
	root, err := Parse(text)
	if err != nil {
		r.note(ref, "references to files that are neither JSON nor YAML objects: taken as anything")
		return nil, false
	}
	r.files[name] = &file{name: name, root: root, two: r.files[""].two}
	return r.files[name], true
}

// ref returns the reference of the one form for a reference to a schema in f; ok is
// false when it leads nowhere.
func (r *reader) ref(f *file, ref string) (string, bool) {
	t, ok := r.find(f, ref)
	if !ok {
		return "", false
	}
	key := t.file.name + "#" + t.pointer
	name, known := r.names[key]
	if !known {
		name = r.nameOf(t)
		r.names[key], r.taken[name] = name, true
		t.name = name
		r.due = append(r.due, t)
	}
	return schemaRef + name, true
}

// nameOf is a name for a schema that no other has: the last step of where it stands.
func (r *reader) nameOf(t target) string {
	base := t.pointer[strings.LastIndexByte(t.pointer, '/')+1:]
	if t.pointer == "" {
		base = strings.TrimSuffix(path.Base(t.file.name), path.Ext(t.file.name))
	}
	base = strings.Map(func(c rune) rune {
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' {
			return c
		}
		return '_'
	}, base)
	if len(base) > 100 {
		base = base[:100]
	}
	name := base
	for i := 2; name == "" || r.taken[name]; i *= 2 { // few tries, however many share a name
		for j := i; j < 2*i && (name == "" || r.taken[name]); j++ {
			name = base + "_" + strconv.Itoa(j)
		}
	}
	return name
}

// drain writes the schemas that references have named, until none is left.
func (r *reader) drain() {
	for len(r.due) > 0 && r.err == nil {
		t := r.due[len(r.due)-1]
		r.due = r.due[:len(r.due)-1]
		r.schemas[t.name] = r.schema(t.file, t.node)
	}
}
