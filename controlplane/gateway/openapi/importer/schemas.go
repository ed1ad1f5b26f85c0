package importer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
	"sluice.dev/sluice/filters/decision"
)

// keywords of a schema by what their values are. What is in none of them, and no
// data, says nothing of what is valid.
var (
	holders  = set(strings.Fields("items additionalProperties contains propertyNames"))
	appliers = set(strings.Fields("if then else")) // to the same value
	lists    = set(strings.Fields("allOf anyOf oneOf prefixItems"))
	named    = set(strings.Fields("properties patternProperties dependentSchemas"))
	data     = set(strings.Fields("type enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format " +
		"minItems maxItems uniqueItems minContains maxContains minProperties maxProperties dependentRequired"))
)

func has(list []string, s string) bool { _, ok := slices.BinarySearch(list, s); return ok }

// checked is a schema as edges read it.
type checked struct {
	schema config.JSONSchema
	refs   []string // names of the schemas that it leads to
	nodes  int      // schemas in it
	fault  string   // why no edge can check it; empty: perhaps one can
}

// schemas are those of a document as edges read them: each is written once.
type schemas struct {
	of    *document.Document
	named map[string]*checked
	fixed map[string]map[string]bool // names of read-only properties, by reference
}

// get is the schema of a name that a reference has given.
func (s *schemas) get(name string) *checked { return s.named[name] }

// check writes a schema of a request, and those that it leads to.
func (s *schemas) check(v any) *checked {
	c, due := s.write(v)
	for len(due) > 0 {
		ref := due[len(due)-1]
		due = due[:len(due)-1]
		name, v, _ := s.of.Schema(ref)
		if s.named[name] != nil {
			continue
		}
		n, more := s.write(v)
		s.named[name] = n
		due = append(due, more...)
	}
	return c
}

// write writes one schema, and returns the references in it.
func (s *schemas) write(v any) (*checked, []string) {
	w := &writer{schemas: s}
	out := w.schema(v, nil)
	c := &checked{nodes: w.nodes, fault: w.fault}
	refs := set(w.refs)
	for _, ref := range refs {
		name, _, _ := s.of.Schema(ref)
		c.refs = append(c.refs, name)
	}
	text, err := json.Marshal(out)
	if err == nil {
		err = c.schema.UnmarshalJSON(text)
	}
	if err != nil && c.fault == "" {
		c.fault = "a schema " + decision.Cut(err.Error(), 100)
	}
	return c, refs
}

// writer writes one schema.
type writer struct {
	*schemas
	refs  []string
	nodes int
	fault string // the first
}

func (w *writer) bad(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, args...)
	}
}

// schema writes v. fixed are read-only properties that schemas around it give to the
// same value.
func (w *writer) schema(v any, fixed []map[string]bool) any {
	o, ok := v.(document.Object)
	if !ok {
		return v
	}
	w.nodes++
	if left, ok := o[document.LeftOut].([]any); ok {
		w.bad("%s", leftOut(left[0]))
	}
	fixed = append(slices.Clip(fixed), w.readOnly(o, 0)...)
	out := document.Object{}
	for _, key := range sortedKeys(o) {
		w.keyword(out, key, o[key], fixed)
	}
	return out
}

// leftOut is why a schema cannot be checked of which the reader has left something out.
func leftOut(keyword any) string {
	if keyword == "$ref" {
		return "a reference that is not followed"
	}
	return fmt.Sprintf("`%v`", keyword)
}

func (w *writer) keyword(out document.Object, key string, v any, fixed []map[string]bool) {
	switch {
	case key == "$ref":
		ref, _ := v.(string)
		name, _, _ := w.of.Schema(ref)
		w.refs = append(w.refs, ref)
		out[key] = "#/schemas/" + name
	case key == "unevaluatedProperties" || key == "unevaluatedItems":
		w.bad("`%s`", key)
	case key == "required":
		w.required(out, v, fixed)
	case key == "not": // asking for less in it would ask for more
		out[key] = w.schema(v, nil)
	case has(holders, key):
		out[key] = w.schema(v, nil)
	case has(appliers, key):
		out[key] = w.schema(v, fixed)
	case has(lists, key):
		if key == "prefixItems" {
			fixed = nil
		}
		list, _ := v.([]any)
		all := make([]any, len(list))
		for i, x := range list {
			all[i] = w.schema(x, fixed)
		}
		out[key] = all
	case has(named, key):
		by := document.Object{}
		of, _ := v.(document.Object)
		for _, name := range sortedKeys(of) {
			by[name] = w.schema(of[name], nil)
		}
		out[key] = by
	case has(data, key):
		w.data(v)
		out[key] = v
	}
}

// data looks for texts and numbers that no file keeps.
func (w *writer) data(v any) {
	switch v := v.(type) {
	case json.Number:
		if !keepsDigits(v.String()) {
			w.bad("a number of more digits than YAML keeps")
		}
	case []any:
		for _, x := range v {
			w.data(x)
		}
	case document.Object:
		for _, key := range sortedKeys(v) {
			w.data(v[key])
		}
	}
}

// required leaves out read-only properties: requests need not have them.
func (w *writer) required(out document.Object, v any, fixed []map[string]bool) {
	list, _ := v.([]any)
	list = slices.DeleteFunc(slices.Clone(list), func(x any) bool {
		name, _ := x.(string)
		return slices.ContainsFunc(fixed, func(m map[string]bool) bool { return m[name] })
	})
	if len(list) > 0 {
		out["required"] = list
	}
}

// maxBases bounds how far, and how many, schemas that o is made of are looked at.
const maxBases = 8

// readOnly are the read-only properties of o and of what allOf and $ref join with it.
func (w *writer) readOnly(o document.Object, depth int) (list []map[string]bool) {
	own := map[string]bool{}
	of, _ := o["properties"].(document.Object)
	for name, v := range of {
		if w.isReadOnly(v) {
			own[name] = true
		}
	}
	if len(own) > 0 {
		list = append(list, own)
	}
	parts, _ := o["allOf"].([]any)
	if ref, ok := o["$ref"].(string); ok {
		parts = []any{document.Object{"$ref": ref}}
	}
	for _, v := range parts[:min(len(parts), maxBases)] {
		part, _ := v.(document.Object)
		if ref, ok := part["$ref"].(string); ok {
			list = append(list, w.fixedOf(ref, depth))
		} else if depth < maxBases {
			list = append(list, w.readOnly(part, depth+1)...)
		}
	}
	return list
}

// fixedOf are the read-only properties of the schema that ref leads to.
func (w *writer) fixedOf(ref string, depth int) map[string]bool {
	if known, ok := w.fixed[ref]; ok || depth >= maxBases {
		return known
	}
	w.fixed[ref] = nil // of one that leads to itself
	_, v, _ := w.of.Schema(ref)
	o, _ := v.(document.Object)
	all := map[string]bool{}
	for _, m := range w.readOnly(o, depth+1) {
		for name := range m {
			all[name] = true
		}
	}
	w.fixed[ref] = all
	return all
}

// isReadOnly reports whether a property is one that only answers have.
func (w *writer) isReadOnly(v any) bool {
	o, _ := v.(document.Object)
	if ref, ok := o["$ref"].(string); ok {
		_, v, _ := w.of.Schema(ref)
		o, _ = v.(document.Object)
	}
	parts, _ := o["allOf"].([]any)
	return o["readOnly"] == true || slices.ContainsFunc(parts[:min(len(parts), maxBases)], func(v any) bool {
		part, _ := v.(document.Object)
		return part["readOnly"] == true
	})
}
