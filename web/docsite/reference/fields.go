package reference

import (
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/web/docsite"
)

// What a page has at the most. What is beyond is named, and stands in the document.
const (
	maxDepth      = 6         // of fields in fields
	maxRows       = 300       // of all tables
	maxSchemas    = 4000      // that are looked at
	maxText       = 96 << 10  // bytes of names and descriptions
	maxComponents = 512 << 10 // bytes of the components that are read
)

// field is a row of a table: a parameter, or a field of a body.
type field struct {
	Name, In, Type string
	Required       bool
	Limits         []string
	Text           template.HTML
}

// reader reads the parts of a document that one page shows.
type reader struct {
	index                             *index
	product                           string
	read                              map[string]object // components
	rows, schemas, text, componentsOf int               // that may still be read
	example                           int               // bytes of a body that may still be shown
	cut                               bool              // something was left out
}

func newReader(x *index, product string) *reader {
	return &reader{index: x, product: product, read: map[string]object{}, rows: maxRows, schemas: maxSchemas, text: maxText, componentsOf: maxComponents, example: maxExample}
}

// follow returns what a schema or another part is, and the reference through which it was
// found; "": it stands there itself. A reference that leads to a reference is followed
// further, a bounded number of times.
func (r *reader) follow(v any) (o object, ref string) {
	o, _ = v.(object)
	for range maxDepth {
		to := text(o["$ref"])
		if to == "" {
			return o, ref
		}
		if ref = to; r.read[ref] == nil {
			r.load(ref)
		}
		o = r.read[ref]
	}
	return nil, ref
}

// resolved is follow for what has no name.
func (r *reader) resolved(v any) object {
	o, _ := r.follow(v)
	return o
}

// load reads a component, while there is room.
func (r *reader) load(ref string) {
	raw, _ := r.index.component(ref)
	var o object
	switch {
	case raw == nil:
	case len(raw) > r.componentsOf:
		r.cut = true
	default:
		r.componentsOf -= len(raw)
		_ = json.Unmarshal(raw, &o)
	}
	if o == nil {
		o = object{}
	}
	r.read[ref] = o
}

// fields are the rows of what a schema is made of.
func (r *reader) fields(schema any) (list []field) {
	r.inside(&list, "", schema, nil)
	return list
}

// row adds a field, and what it is made of.
func (r *reader) row(list *[]field, name string, schema any, required bool, above []string) {
	if r.rows <= 0 {
		r.cut = true
		return
	}
	r.rows--
	s, ref := r.follow(schema)
	f := field{Name: r.short(name, 400), Type: r.kind(schema, 0), Required: required, Limits: r.limits(s)}
	about := s["description"]
	if outer, _ := schema.(object); outer["description"] != nil {
		about = outer["description"]
	}
	f.Text = r.markdown(about, 1<<10)
	if ref != "" && slices.Contains(above, ref) {
		f.Type += ", as above"
	}
	*list = append(*list, f)
	r.inside(list, name, schema, above)
}

// inside adds the fields of a schema, whose own name stands before theirs. above are
// the references that led here: what leads back to one of them is not followed.
func (r *reader) inside(list *[]field, name string, schema any, above []string) {
	if r.schemas--; r.schemas < 0 {
		r.cut = true
		return
	}
	s, ref := r.follow(schema)
	if ref != "" && slices.Contains(above, ref) {
		return
	}
	if len(above) >= 4*maxDepth || strings.Count(name, ".") >= maxDepth {
		r.cut = true
		return
	}
	above = append(slices.Clip(above), ref)
	properties, _ := s["properties"].(object)
	required, _ := s["required"].([]any)
	names := sorted(properties)
	slices.SortStableFunc(names, func(a, b string) int { return order(required, a) - order(required, b) })
	for _, p := range names {
		r.row(list, joined(name, p), properties[p], slices.Contains(required, any(p)), above)
	}
	for _, part := range parts(s["allOf"]) {
		r.inside(list, name, part, above)
	}
	for _, one := range []string{"oneOf", "anyOf"} {
		forms := parts(s[one])
		forms = slices.DeleteFunc(forms, isNull)
		for i, form := range forms {
			as := name
			if len(forms) > 1 {
				as = strings.TrimSpace(name + " (" + r.formName(form, i) + ")")
			}
			r.inside(list, as, form, above)
		}
	}
	if s["items"] != nil {
		r.inside(list, name+"[]", s["items"], above)
	}
	if more, ok := s["additionalProperties"].(object); ok {
		r.inside(list, joined(name, "*"), more, above)
	}
}

// joined is the name of a field in another.
func joined(name, field string) string {
	if field = decision.Cut(field, 100); name == "" {
		return field
	}
	return name + "." + field
}

// order puts what is required first.
func order(required []any, name string) int {
	if slices.Contains(required, any(name)) {
		return 0
	}
	return 1
}

// parts is a copy of a list of schemas.
func parts(v any) []any {
	list, _ := v.([]any)
	return slices.Clone(list)
}

func isNull(schema any) bool {
	o, _ := schema.(object)
	return o["type"] == "null"
}

// formName names one of several forms of a value.
func (r *reader) formName(schema any, i int) string {
	s, ref := r.follow(schema)
	if ref != "" {
		return r.name(ref)
	}
	if title := text(s["title"]); title != "" {
		return decision.Cut(title, 60)
	}
	return fmt.Sprintf("form %d", i+1)
}

// name is what a component is called, without the product before it.
func (r *reader) name(ref string) string {
	_, name := r.index.component(ref)
	return decision.Cut(strings.TrimPrefix(name, r.product+"."), 60)
}

// short is a text of the document in at most most bytes, while there is room.
func (r *reader) short(s string, most int) string {
	s = decision.Cut(s, most)
	if len(s) > r.text {
		r.cut = true
		return "…"
	}
	r.text -= len(s)
	return s
}

// markdown is a description, of at most most bytes.
func (r *reader) markdown(v any, most int) template.HTML {
	s := text(v)
	if s == "" {
		return ""
	}
	return docsite.Text([]byte(r.short(s, most)))
}
