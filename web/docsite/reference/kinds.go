package reference

import (
	"encoding/json"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/decision"
)

// shownValues is how many values of an enum are shown.
const shownValues = 12

// kind says in words what values a schema allows.
func (r *reader) kind(schema any, depth int) string {
	if allowed, ok := schema.(bool); ok && !allowed {
		return "nothing"
	}
	if r.schemas--; r.schemas < 0 || depth > maxDepth {
		return "…"
	}
	s, ref := r.follow(schema)
	for _, one := range []string{"oneOf", "anyOf"} {
		if forms := parts(s[one]); len(forms) > 0 {
			return r.either(forms, depth)
		}
	}
	if of := parts(s["allOf"]); len(of) == 1 && ref == "" {
		return r.kind(of[0], depth+1)
	}
	if values, ok := s["enum"].([]any); ok {
		return r.values(values)
	}
	if v, ok := s["const"]; ok {
		return "always " + r.value(v)
	}
	var words []string
	for _, t := range types(s) {
		words = append(words, r.plain(t, s, ref, depth))
	}
	return strings.Join(words, " or ")
}

// types are what a schema says of itself, or what it seems to be.
func types(s object) (list []string) {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, v := range t[:min(len(t), 7)] {
			list = append(list, decision.Cut(text(v), 20))
		}
	}
	switch {
	case len(list) > 0:
		return list
	case s["properties"] != nil, s["additionalProperties"] != nil, s["allOf"] != nil:
		return []string{"object"}
	case s["items"] != nil:
		return []string{"array"}
	}
	return []string{"any"}
}

// plain says what a type is, with the name of an object and the parts of an array.
func (r *reader) plain(t string, s object, ref string, depth int) string {
	switch t {
	case "object":
		if ref != "" {
			return r.short(r.name(ref), 60)
		}
	case "array":
		if s["items"] != nil {
			return "array of " + r.kind(s["items"], depth+1)
		}
	case "string", "integer", "number":
		if f := text(s["format"]); f != "" {
			return t + " (" + r.short(f, 30) + ")"
		}
	}
	return r.short(t, 20)
}

// either names the forms of which one is right.
func (r *reader) either(forms []any, depth int) string {
	var words []string
	for _, f := range forms[:min(len(forms), shownValues)] {
		if w := r.kind(f, depth+1); !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	if len(forms) > shownValues {
		words = append(words, "…")
	}
	return r.short(strings.Join(words, " or "), 600)
}

// values names those of an enum.
func (r *reader) values(list []any) string {
	var words []string
	for _, v := range list[:min(len(list), shownValues)] {
		words = append(words, r.value(v))
	}
	if len(list) > shownValues {
		words = append(words, "…")
	}
	if len(words) == 1 {
		return "always " + words[0]
	}
	return "one of " + strings.Join(words, ", ")
}

// value is a value as JSON, a string without its quotes.
func (r *reader) value(v any) string {
	if s, ok := v.(string); ok {
		return r.short(s, 60)
	}
	switch v.(type) {
	case object, []any:
		return "a structure"
	}
	b, _ := json.Marshal(v) // it came from JSON
	return r.short(string(b), 60)
}

// limits are what a schema asks of a value beside its type.
func (r *reader) limits(s object) (list []string) {
	for _, l := range []struct{ keyword, before string }{
		{"default", "default: "},
		{"minimum", "at least "}, {"exclusiveMinimum", "more than "}, {"maximum", "at most "}, {"exclusiveMaximum", "less than "},
		{"minLength", "length at least "}, {"maxLength", "length at most "},
		{"minItems", "items: at least "}, {"maxItems", "items: at most "}, {"pattern", "pattern: "},
	} {
		if v, ok := s[l.keyword]; ok && v != nil {
			list = append(list, l.before+r.value(v))
		}
	}
	if s["readOnly"] == true {
		list = append(list, "in answers only")
	}
	if s["deprecated"] == true {
		list = append(list, "deprecated")
	}
	return list
}
