package compile

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/schema"
)

// value encodes one scalar of an enum.
func (s *object) value(v any) []uint32 {
	switch v := v.(type) {
	case bool:
		if v {
			return []uint32{schema.ValueTrue, 0, 0}
		}
		return []uint32{schema.ValueFalse, 0, 0}
	case string:
		at, n := s.put2(v)
		return []uint32{schema.ValueString, at, n}
	case json.Number:
		d, ok := readDecimal(string(v))
		if !ok {
			s.fault(s.place, "has a number that is too long", "at most 400 digits")
		}
		return []uint32{schema.ValueDecimal, s.decimal(d), 0}
	default:
		return []uint32{schema.ValueNull, 0, 0}
	}
}

// exactly is a schema of which v is the only value.
func exactly(v any) any {
	switch v := v.(type) {
	case map[string]any:
		properties := make(map[string]any, len(v))
		for name, member := range v {
			properties[name] = exactly(member)
		}
		required := make([]any, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			required = append(required, name)
		}
		return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	case []any:
		n := json.Number(strconv.Itoa(len(v)))
		s := map[string]any{"type": "array", "minItems": n, "maxItems": n}
		prefix := make([]any, len(v))
		for i := range v {
			prefix[i] = exactly(v[i])
		}
		if len(prefix) > 0 {
			s["prefixItems"] = prefix
		}
		return s
	default:
		return map[string]any{"const": v}
	}
}

// apply compiles what else must hold for the same value.
func (s *object) apply() {
	all := append(s.all, s.listed("allOf")...)
	if v, there := s.v["$ref"]; there {
		text, _ := v.(string)
		if n := s.reference(text); n != 0 {
			all = append(all, n)
		}
	}
	one := s.listed("oneOf")
	others := [4]uint32{s.below("not"), s.below("if"), s.below("then"), s.below("else")}
	if others[1] == 0 {
		others[2], others[3] = 0, 0 // they mean nothing without if
	}
	s.words[s.node+schema.NodeApply] = s.applyGroup(all, s.listed("anyOf"), one, others, s.expected("anyOf"), s.expected("oneOf"))
}

func (c *compiler) applyGroup(all, anyOf, one []uint32, others [4]uint32, anyText, oneText string) uint32 {
	w := make([]uint32, schema.ApplyWords)
	w[schema.ApplyAll], w[schema.ApplyAny], w[schema.ApplyOne] = uint32(len(all)), uint32(len(anyOf)), uint32(len(one))
	copy(w[schema.ApplyNot:], others[:])
	w[schema.ApplyAnyText], w[schema.ApplyAnyText+1] = c.put2(anyText)
	w[schema.ApplyOneText], w[schema.ApplyOneText+1] = c.put2(oneText)
	return c.put(slices.Concat(w, all, anyOf, one))
}

// maxWords bounds the alternatives that are named.
const maxWords = 8

// expected says what the alternatives of a keyword are, as far as a few words do.
func (s *object) expected(keyword string) string {
	list, _ := s.v[keyword].([]any)
	var words []string
	for _, v := range list {
		o, _ := v.(map[string]any)
		word := ""
		switch t := o["type"].(type) {
		case string:
			word = t
		case []any:
			word = strings.Trim(jsonText(t), "[]")
		}
		if c, ok := o["const"]; ok {
			word = jsonText(c)
		}
		if title, ok := o["title"].(string); ok {
			word = title
		}
		if ref, ok := o["$ref"].(string); ok {
			word = ref[strings.LastIndexByte(ref, '/')+1:]
		}
		if word == "" {
			return "one of " + strconv.Itoa(len(list)) + " alternatives"
		}
		if len(words) == maxWords {
			words[maxWords-1] = "others"
			break
		}
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return "one of " + strings.Join(words, ", ")
}

// jsonText is v as JSON.
func jsonText(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "a value"
	}
	return strings.TrimSpace(b.String())
}

// reference compiles what a $ref leads to.
func (s *object) reference(ref string) uint32 {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		s.bad("$ref", "#/schemas/NAME, or # and a JSON pointer in the same schema")
		return 0
	}
	target, v, ok := s.lookup(ref)
	if !ok {
		s.fault(s.place.at("$ref"), "leads to "+strconv.Quote(ref)+", which is not there", "a schema of the product, or one in the same schema")
		return 0
	}
	return s.compiler.node(target, v)
}

// lookup finds what a $ref leads to.
func (s *object) lookup(ref string) (target place, v any, ok bool) {
	pointer := strings.TrimPrefix(ref, "#")
	target.root = s.place.root
	if rest, ok := strings.CutPrefix(pointer, "/schemas/"); ok && s.named != nil {
		name, below, _ := strings.Cut(rest, "/")
		target.root = "#" + unpointer(name)
		if pointer = ""; below != "" {
			pointer = "/" + below
		}
	}
	v, ok = s.resolve(&target, pointer)
	return target, v, ok
}

// resolve follows a JSON pointer (RFC 6901) from a root.
func (c *compiler) resolve(p *place, pointer string) (v any, ok bool) {
	if v, ok = c.roots[p.root]; !ok {
		name, named := strings.CutPrefix(p.root, "#")
		text := ""
		if named {
			text = c.named(name)
		}
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if text == "" || d.Decode(&v) != nil {
			return nil, false
		}
		c.roots[p.root] = v
	}
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = unpointer(step)
		*p = p.at(step)
		switch of := v.(type) {
		case map[string]any:
			v, ok = of[step]
		case []any:
			i, err := strconv.Atoi(step)
			if ok = err == nil && i >= 0 && i < len(of); ok {
				v = of[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return v, true
}

// unpointer takes the escapes out of a step of a pointer in a URL.
func unpointer(step string) string {
	if plain, ok := unescape(step); ok {
		step = plain
	}
	return unescapes.Replace(step)
}
