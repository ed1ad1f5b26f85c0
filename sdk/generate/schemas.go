package main

import (
	"slices"
	"strings"
)

const refs = "#/components/schemas/"

// byHand are schemas that methods written by hand take and give.
var byHand = []string{"ChatCompletionRequest", "ChatCompletionChunk"}

// schemas is a document of nothing but the schemas that methods name: what generators of
// types read.
func (d *document) schemas() object {
	all, _ := d.components["schemas"].(object)
	kept := object{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case object:
			if ref, ok := v["$ref"].(string); ok {
				name := strings.TrimPrefix(ref, refs)
				if s, ok := all[name]; ok && kept[name] == nil {
					kept[name] = s
					walk(s)
				}
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	for _, name := range byHand {
		walk(object{"$ref": refs + name})
	}
	for _, o := range d.operations {
		for _, s := range []object{o.Body, o.Result} {
			walk(s)
		}
	}
	return object{
		"openapi": "3.1.0", "info": object{"title": "Sluice", "version": "1"}, "paths": object{},
		"components": object{"schemas": kept},
	}
}

// schemasForGo is schemas as Go can have it: there is no type of several kinds, so that
// such a value is any, and an answer of them raw JSON.
func (d *document) schemasForGo() object {
	doc := d.schemas()
	components, _ := doc["components"].(object)
	all, _ := components["schemas"].(object)
	answers, kept := map[any]bool{}, object{}
	for _, o := range d.operations {
		answers[o.Result["$ref"]] = true
	}
	for name, v := range all {
		s := goSchema(v)
		if o, ok := s.(object); ok && o["x-go-type"] == "any" && answers[refs+name] {
			o["x-go-type"] = "json.RawMessage"
		}
		kept[name] = s
	}
	components["schemas"] = kept
	return doc
}

func goSchema(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = goSchema(v[i])
		}
		return out
	case object:
		if union(v) {
			out := object{"x-go-type": "any", "x-go-type-skip-optional-pointer": true}
			if about, ok := v["description"]; ok {
				out["description"] = about
			}
			return out
		}
		out := make(object, len(v))
		for k, x := range v {
			out[k] = goSchema(x)
		}
		return out
	}
	return v
}

// union reports whether values of a schema are of several kinds, null aside.
func union(s object) bool {
	for _, k := range []string{"oneOf", "anyOf"} {
		of := slices.DeleteFunc(slices.Clone(list(s[k])), func(v any) bool { o, _ := v.(object); return o["type"] == "null" })
		if len(of) > 1 && s["properties"] == nil {
			return true
		}
	}
	return false
}

// typed says a schema in a language: named of what has a name, the rest by kinds.
type typed struct {
	named        func(name string) string
	list, values func(inner string) string
	kinds        map[string]string // of JSON Schema's
	anything     string            // of what no type is known
}

// of is the type of a schema.
func (t typed) of(s object) string {
	if ref, ok := s["$ref"].(string); ok {
		return t.named(strings.TrimPrefix(ref, refs))
	}
	kind, _ := s["type"].(string)
	inner := func(name string) string {
		of, _ := s[name].(object)
		return t.of(of)
	}
	switch {
	case kind == "array":
		return t.list(inner("items"))
	case kind == "object":
		return t.values(inner("additionalProperties"))
	case t.kinds[kind] != "":
		return t.kinds[kind]
	}
	return t.anything
}

// words splits a name in camelCase or snake_case.
func words(name string) []string {
	var out []string
	start := 0
	upper := func(b byte) bool { return b >= 'A' && b <= 'Z' }
	for i := 1; i < len(name); i++ {
		next := i+1 < len(name) && !upper(name[i+1]) && name[i+1] != '_'
		if name[i] == '_' || name[i] == '-' {
			out, start = append(out, name[start:i]), i+1
		} else if upper(name[i]) && i > start && (!upper(name[i-1]) || next) {
			out, start = append(out, name[start:i]), i
		}
	}
	return append(out, name[start:])
}

// snake is a name as Python writes it.
func snake(name string) string { return strings.ToLower(strings.Join(words(name), "_")) }

// initialisms are words that Go writes in capitals.
var initialisms = []string{"id", "url", "vod", "dash", "ndi", "omt"}

// exported is a name as Go exports it.
func exported(name string) string {
	var b strings.Builder
	for _, w := range words(name) {
		if low := strings.ToLower(w); slices.Contains(initialisms, low) {
			b.WriteString(strings.ToUpper(w))
		} else if w != "" {
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
	}
	return b.String()
}

// unexported is a name as Go and TypeScript write a parameter.
func unexported(name string) string {
	all := words(name)
	for i, w := range all {
		if all[i] = strings.ToLower(w); i > 0 {
			all[i] = exported(w)
		}
	}
	if s := strings.Join(all, ""); !slices.Contains([]string{"type", "range", "delete", "in", "import"}, s) {
		return s
	}
	return all[0] + "Name"
}
