package document

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Keywords of JSON Schema 2020-12 that are kept, by what their values must be.
var (
	single = words("items additionalProperties not contains propertyNames if then else unevaluatedProperties unevaluatedItems")
	listed = words("allOf anyOf oneOf prefixItems")
	named  = words("properties patternProperties dependentSchemas")
	strs   = words("format pattern title description contentEncoding contentMediaType")
	nums   = words("minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems minProperties maxProperties minContains maxContains")
	bools  = words("uniqueItems readOnly writeOnly deprecated")
	types  = words("string number integer boolean array object null")
	// silent are keywords that say nothing of what is valid, or that are handled apart.
	silent = words("type required enum const default nullable example examples xml discriminator externalDocs $ref $comment $schema $id collectionFormat allowEmptyValue in name additionalItems")
	// lost are keywords that ask for something which the one form cannot say.
	lost = words("$id $dynamicRef $recursiveRef dependencies extends disallow divisibleBy")
)

func words(s string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		out[w] = true
	}
	return out
}

// schema returns a schema as JSON Schema 2020-12. Examples and what only writers of
// documents need are dropped; a keyword that is not known is named.
func (r *reader) schema(f *file, node any) any {
	if b, ok := node.(bool); ok {
		return b
	}
	o, ok := node.(Object)
	if !ok || !r.spend(1) {
		return Object{}
	}
	if ref, ok := o["$ref"].(string); ok {
		return r.reference(f, o, ref)
	}
	return r.object(f, o)
}

// object returns a schema that is no reference.
func (r *reader) object(f *file, o Object) Object {
	out := Object{}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		r.keyword(f, out, key, o[key])
	}
	if _, tuple := o["items"].([]any); tuple && o["additionalItems"] != nil {
		out["items"] = r.schema(f, o["additionalItems"])
	}
	r.values(out, o)
	bound(out, o, "minimum", "exclusiveMinimum")
	bound(out, o, "maximum", "exclusiveMaximum")
	if o["nullable"] == true || o["x-nullable"] == true {
		return nullable(out)
	}
	return out
}

// LeftOut is the member of a schema, or of a parameter, that names what it says and
// the one form does not: it asks for more than it seems to.
const LeftOut = "x-sluice-left-out"

// leaveOut names a keyword under LeftOut.
func leaveOut(out Object, keyword string) {
	list, _ := out[LeftOut].([]any)
	out[LeftOut] = append(list, keyword)
}

// reference returns a schema that is a reference, and what stands beside it as far as
// the document's version lets that count. Writers of 3.0 mean nullable all the same.
func (r *reader) reference(f *file, o Object, ref string) Object {
	to, ok := r.ref(f, ref)
	if !ok {
		out := Object{}
		leaveOut(out, "$ref")
		return out
	}
	out := Object{"$ref": to}
	if r.siblings {
		beside := maps.Clone(o)
		delete(beside, "$ref")
		for _, key := range []string{"title", "description", "default", "deprecated"} {
			delete(beside, key)
		}
		if more := r.object(f, beside); len(more) > 0 {
			return Object{"allOf": []any{out, more}}
		}
	} else if o["nullable"] == true || o["x-nullable"] == true {
		return nullable(out)
	}
	return out
}

// keyword writes one keyword of a schema.
func (r *reader) keyword(f *file, out Object, key string, v any) {
	if lost[key] {
		leaveOut(out, key)
	}
	switch {
	case silent[key] || strings.HasPrefix(key, "x-"):
	case single[key]:
		if list, ok := v.([]any); ok { // items of drafts before 2020-12
			if key == "items" {
				out["prefixItems"] = r.schemaList(f, list)
			}
			return
		}
		out[key] = r.schema(f, v)
	case listed[key]:
		if list, ok := v.([]any); ok && len(list) > 0 {
			out[key] = r.schemaList(f, list)
		}
	case named[key]:
		by := Object{}
		of, _ := v.(Object)
		for name, x := range of {
			by[name] = r.schema(f, x)
		}
		out[key] = by
	case strs[key]:
		if s, ok := v.(string); ok {
			out[key] = s
		}
	case nums[key]:
		if n, ok := number(v); ok {
			out[key] = n
		}
	case bools[key]:
		if b, ok := v.(bool); ok {
			out[key] = b
		}
	case key == "dependentRequired":
		if of, ok := v.(Object); ok {
			by := Object{}
			for name, list := range of {
				by[name] = anys(unique(texts(list)))
			}
			out[key] = by
		}
	case strings.HasPrefix(key, "$"):
		r.note(key, "keywords of JSON Schema that are left out of the description")
	}
}

func (r *reader) schemaList(f *file, list []any) []any {
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = r.schema(f, x)
	}
	return out
}

// values writes the keywords whose values are data.
func (r *reader) values(out, o Object) {
	switch t := o["type"].(type) {
	case string:
		if t == "file" {
			out["type"], out["format"] = "string", "binary"
		} else if types[t] {
			out["type"] = t
		} else if t != "any" {
			r.note(t, "types that JSON Schema does not have: taken as anything")
			leaveOut(out, "type")
		}
	case []any:
		var known []any
		for _, x := range t {
			if s, ok := x.(string); ok && types[s] {
				known = append(known, s)
			}
		}
		if len(known) > 0 {
			out["type"] = known
		}
	}
	if list := texts(o["required"]); len(list) > 0 {
		out["required"] = anys(unique(list))
	}
	if list, ok := o["enum"].([]any); ok && len(list) > 0 && r.spend(len(list)) {
		out["enum"] = list
	}
	if v, ok := o["const"]; ok {
		out["const"] = v
	}
	switch v := o["default"].(type) {
	case string, bool, json.Number:
		out["default"] = v
	}
}

// number reads a number; some documents write it as text.
func number(v any) (json.Number, bool) {
	n, ok := v.(json.Number)
	if !ok {
		n = json.Number(str(v))
	}
	_, err := n.Float64()
	return n, err == nil
}

// bound turns the boolean exclusive bound of OpenAPI 3.0 into the number of 2020-12.
func bound(out, o Object, inclusive, exclusive string) {
	if o[exclusive] == true && out[inclusive] != nil {
		out[exclusive] = out[inclusive]
		delete(out, inclusive)
	}
}

// nullable lets values be null, as 3.1 says it.
func nullable(o Object) Object {
	if list, ok := o["enum"].([]any); ok && !slices.ContainsFunc(list, func(v any) bool { return v == nil }) {
		o["enum"] = append(append([]any{}, list...), nil)
	}
	if t, ok := o["type"].(string); ok {
		o["type"] = []any{t, "null"}
		return o
	}
	if len(o) == 0 {
		return o
	}
	return Object{"anyOf": []any{o, Object{"type": "null"}}}
}

func unique(list []string) (out []string) {
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
