package toolset

import "strings"

// The places of schemas: in an OpenAPI document, and in one that stands alone.
const (
	components = "#/components/schemas/"
	defs       = "#/$defs/"
)

// schemas rewrites schemas of a document as JSON Schema 2020-12, which is what
// agents are given. The ones that they refer to are gathered.
type schemas struct {
	doc  document
	used object // by name, already rewritten
	left *int   // schemas that may still be written; what is referred to beyond them is left open
	open bool   // something was
}

// Keywords whose values are a schema, a list of schemas, or schemas by name.
// Every other value is kept as it is.
var (
	single = map[string]bool{"items": true, "additionalProperties": true, "not": true, "contains": true, "propertyNames": true, "if": true, "then": true, "else": true}
	listed = map[string]bool{"allOf": true, "anyOf": true, "oneOf": true, "prefixItems": true}
	named  = map[string]bool{"properties": true, "patternProperties": true, "$defs": true}
	// dropped say nothing to a validator, or are OpenAPI's alone.
	dropped = map[string]bool{"example": true, "examples": true, "xml": true, "discriminator": true, "externalDocs": true, "nullable": true}
)

// rewrite returns node as JSON Schema.
func (s *schemas) rewrite(node any) any {
	o, ok := node.(object)
	if !ok {
		return node // true or false
	}
	*s.left--
	out := object{}
	for key, v := range o {
		switch {
		case dropped[key]:
		case key == "$ref":
			s.follow(out, v)
		case single[key]:
			out[key] = s.rewrite(v)
		case listed[key]:
			list, _ := v.([]any)
			rewritten := make([]any, len(list))
			for i := range list {
				rewritten[i] = s.rewrite(list[i])
			}
			out[key] = rewritten
		case named[key]:
			by := object{}
			for name, sub := range child(o, key) {
				by[name] = s.rewrite(sub)
			}
			out[key] = by
		default:
			out[key] = v
		}
	}
	bounds(out, "minimum", "exclusiveMinimum")
	bounds(out, "maximum", "exclusiveMaximum")
	if o["nullable"] == true {
		return nullable(out)
	}
	return out
}

// follow writes a reference, or, when there is no room for what it means, in words.
func (s *schemas) follow(out object, v any) {
	to, _ := v.(string)
	name := strings.TrimPrefix(to, components)
	if _, seen := s.used[name]; !seen && *s.left <= 0 && name != to {
		s.open = true
		out["description"] = "As " + name + " in /openapi.json."
		return
	}
	out["$ref"] = s.ref(v)
}

// ref gathers what a reference means and returns it as it stands in the result.
func (s *schemas) ref(v any) any {
	to, _ := v.(string)
	name, ok := strings.CutPrefix(to, components)
	if !ok {
		return v
	}
	if _, seen := s.used[name]; !seen {
		s.used[name] = object{} // a schema may mean itself
		s.used[name] = s.rewrite(s.doc.at(to))
	}
	return defs + name
}

// bounds turns OpenAPI 3.0's boolean exclusive bound into the number of 2020-12.
func bounds(o object, bound, exclusive string) {
	flag, ok := o[exclusive].(bool)
	if !ok {
		return
	}
	delete(o, exclusive)
	if flag {
		o[exclusive] = o[bound]
		delete(o, bound)
	}
}

// nullable lets a schema of OpenAPI 3.0 be null too.
func nullable(o object) object {
	kind, ok := o["type"].(string)
	if !ok {
		return object{"anyOf": []any{o, object{"type": "null"}}}
	}
	o["type"] = []any{kind, "null"}
	if values, ok := o["enum"].([]any); ok {
		o["enum"] = append(append([]any{}, values...), nil)
	}
	return o
}

// root returns a rewritten schema whose root is no reference, together with what
// it refers to.
func (s *schemas) root(node object) object {
	out, _ := s.rewrite(s.doc.resolve(node)).(object)
	return s.whole(out)
}

// whole adds what was gathered to a schema.
func (s *schemas) whole(o object) object {
	if len(s.used) > 0 {
		o["$defs"] = s.used
	}
	return o
}

// plainObject reports whether a schema is an object of named properties and
// nothing else, so that its properties can be arguments by themselves.
func plainObject(o object) bool {
	for _, key := range []string{"allOf", "anyOf", "oneOf", "not", "if", "patternProperties"} {
		if _, ok := o[key]; ok {
			return false
		}
	}
	if extra, ok := o["additionalProperties"]; ok && extra != false {
		return false
	}
	return o["type"] == "object" && len(child(o, "properties")) > 0
}
