package document

import (
	"encoding/json"
	"slices"
	"strings"
)

// Keywords of JSON Schema 2020-12 that are kept, by what their values must be.
var (
	single = words("items additionalProperties not contains propertyNames if then else unevaluatedProperties unevaluatedItems additionalItems")
	listed = words("allOf anyOf oneOf prefixItems")
	named  = words("properties patternProperties dependentSchemas")
	strs   = words("format pattern title description contentEncoding contentMediaType")
	nums   = words("minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems minProperties maxProperties minContains maxContains")
	bools  = words("uniqueItems readOnly writeOnly deprecated")
	types  = words("string number integer boolean array object null")
	// silent are keywords that say nothing of what is valid, or that are handled apart.
	silent = words("type required enum const default nullable example examples xml discriminator externalDocs $ref $comment $schema $id collectionFormat allowEmptyValue in name")
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
		to, ok := r.ref(f, ref)
		if !ok {
			return Object{}
		}
		return Object{"$ref": to}
	}
	out := Object{}
	for key, v := range o {
		r.keyword(f, out, key, v)
	}
	r.values(out, o)
	bound(out, o, "minimum", "exclusiveMinimum")
	bound(out, o, "maximum", "exclusiveMaximum")
	if o["nullable"] == true || o["x-nullable"] == true {
		return nullable(out)
	}
	return out
}

// keyword writes one keyword of a schema.
func (r *reader) keyword(f *file, out Object, key string, v any) {
	switch {
	case silent[key] || strings.HasPrefix(key, "x-"):
	case single[key]:
		if list, ok := v.([]any); ok { // items of drafts before 2020-12
			if key == "items" {
				out["prefixItems"] = r.schemaList(f, list)
			}
			return
		}
		if key == "additionalItems" {
			key = "items"
			if _, tuple := out["items"]; tuple {
				return
			}
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
	for _, key := range []string{"const", "default"} {
		switch v := o[key].(type) {
		case string, bool, json.Number:
			out[key] = v
		}
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
