package config

import "fmt"

// InFile is an error of one file as a whole.
type InFile struct {
	Name string
	Err  error
}

// Error says the file and what is wrong.
func (e InFile) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e InFile) Unwrap() error { return e.Err }

// Sources are the files of a merged document, for finding where a fault stands.
type Sources struct {
	files   []sourceFile
	lists   map[string][][]origin // of each element, the latest last
	scalars map[string]origin
}

type sourceFile struct {
	name string
	Source
}

// origin is where an element of a list, or a field, was said.
type origin struct {
	file, index int // index below zero: of no list
	layer       int
}

func (o origin) scalar() origin { o.index = -1; return o }

// sources are those of the merged document.
func (m *merger) sources() Sources {
	m.src.lists = map[string][][]origin{}
	for name, words := range m.words {
		for _, o := range words {
			m.src.lists[name] = append(m.src.lists[name], []origin{o})
		}
	}
	for name, list := range m.lists {
		for _, e := range list {
			if e != nil {
				m.src.lists[name] = append(m.src.lists[name], e.origins)
			}
		}
	}
	return m.src
}

// place is the file and line of a field, in the file of o.
func (s Sources) place(o origin, field string) string {
	f := s.files[o.file]
	if line := f.Line(field); line > 0 {
		return fmt.Sprintf("%s:%d", f.name, line)
	}
	return f.name
}

// Place is the file and the line of a field of the merged document, as FILE:LINE:
// where it was said last, or else where its object was said first. A field that
// stands nowhere has the name of the only file, or none.
func (s Sources) Place(field string) string {
	p := placeOf(field)
	if all := s.lists[p.list]; p.at >= 0 && p.at < len(all) {
		own := func(o origin) string {
			f := fmt.Sprintf("%s[%d]", p.list, o.index)
			if p.rest != "" && p.rest[0] != '[' {
				f += "."
			}
			return f + p.rest
		}
		origins := all[p.at]
		for i := len(origins) - 1; i >= 0; i-- {
			if _, exact := s.files[origins[i].file].find(own(origins[i])); exact {
				return s.place(origins[i], own(origins[i]))
			}
		}
		return s.place(origins[0], own(origins[0]))
	}
	if o, ok := s.scalars[p.list]; ok {
		return s.place(o, field)
	}
	if len(s.files) == 1 {
		if line := s.files[0].Line(field); line > 0 {
			return fmt.Sprintf("%s:%d", s.files[0].name, line)
		}
		return s.files[0].name
	}
	return ""
}
