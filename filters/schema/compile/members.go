package compile

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/schema"
)

// maxText bounds what a table says of an enum's values, in bytes.
const maxText = 200

// members compiles what is asked of an object's members. Every name that something
// is asked of has an entry, sorted by hash, and a bit if it matters that it is there.
func (s *object) members() {
	w := make([]uint32, schema.ObjectWords)
	w[schema.ObjectMin], _ = s.count("minProperties")
	w[schema.ObjectMax] = s.bound("maxProperties")
	w[schema.ObjectOthers], w[schema.ObjectNames] = s.below("additionalProperties"), s.below("propertyNames")
	nodes := s.mapped("properties")
	bits := map[string]uint32{}
	bit := func(name string) uint32 {
		b, ok := bits[name]
		if !ok {
			b = uint32(len(bits))
			bits[name] = b
		}
		return b
	}
	put := func(at int, n int, words []uint32) { w[at], w[at+1] = uint32(n), s.put(words) }

	required := s.texts("required", s.v["required"])
	var words []uint32
	for _, name := range required {
		at, n := s.put2(name)
		words = append(words, bit(name), at, n)
	}
	put(schema.ObjectRequired, len(required), words)

	words = nil
	needs := s.dictionary("dependentRequired")
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		for _, other := range s.texts("dependentRequired", needs[name]) {
			at, n := s.put2(other)
			words = append(words, bit(name), bit(other), at, n)
		}
	}
	put(schema.ObjectNeeds, len(words)/schema.NeedWords, words)

	words = nil
	dependents := s.mapped("dependentSchemas")
	for _, name := range slices.Sorted(maps.Keys(dependents)) {
		words = append(words, bit(name), dependents[name])
	}
	put(schema.ObjectDependents, len(dependents), words)

	words = nil
	patterns := s.mapped("patternProperties")
	for _, p := range slices.Sorted(maps.Keys(patterns)) {
		words = append(words, s.pattern("patternProperties", p), patterns[p])
	}
	put(schema.ObjectPatterns, len(patterns), words)

	w[schema.ObjectBits] = uint32(len(bits))
	names := slices.Collect(maps.Keys(nodes))
	for name := range bits {
		if _, ok := nodes[name]; !ok {
			names = append(names, name)
		}
	}
	put(schema.ObjectProperties, len(names), s.properties(names, nodes, bits))
	s.words[s.node+schema.NodeObject] = s.put(w)
}

// properties are the entries of names.
func (s *object) properties(names []string, nodes, bits map[string]uint32) (words []uint32) {
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(schema.Hash(a), schema.Hash(b)), cmp.Compare(a, b))
	})
	for _, name := range names {
		at, n := s.put2(name)
		bit, ok := bits[name]
		if !ok {
			bit = schema.None
		}
		words = append(words, schema.Hash(name), at, n, nodes[name], bit)
	}
	return words
}

// dictionary is a keyword's value, which must be an object.
func (s *object) dictionary(keyword string) map[string]any {
	v, there := s.v[keyword]
	if !there {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		s.bad(keyword, "an object")
	}
	return m
}

// mapped compiles the schemas that a keyword's value names.
func (s *object) mapped(keyword string) map[string]uint32 {
	m := s.dictionary(keyword)
	nodes := make(map[string]uint32, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		nodes[name] = s.compiler.node(s.place.at(keyword, name), m[name])
	}
	return nodes
}

// texts reads a list of names.
func (s *object) texts(keyword string, v any) (list []string) {
	values, ok := v.([]any)
	if v == nil {
		return nil
	}
	seen := make(map[string]bool, len(values))
	for _, v := range values {
		name, is := v.(string)
		ok = ok && is && !seen[name]
		seen[name] = true
		list = append(list, name)
	}
	if !ok {
		s.bad(keyword, "a list of names, each given once")
	}
	return list
}

// enum compiles enum and const. Values that are objects or arrays become schemas.
func (s *object) enum() {
	list, ok := s.v["enum"].([]any)
	if _, there := s.v["enum"]; there && !ok {
		s.bad("enum", "a list of values")
		return
	}
	if ok {
		s.values("enum", list)
	}
	if v, there := s.v["const"]; there {
		s.values("const", []any{v})
	}
}

// values asks a value to be one of list.
func (s *object) values(keyword string, list []any) {
	var words, alternatives []uint32
	text := ""
	for i, v := range list {
		if i > 0 && len(text) < maxText {
			text += ", "
		}
		if len(text) < maxText {
			text += decision.Cut(jsonText(v), maxText)
		}
		switch v.(type) {
		case map[string]any, []any:
			alternatives = append(alternatives, s.compiler.node(s.place.at(keyword+"="+strconv.Itoa(i)), exactly(v)))
		default:
			words = append(words, s.value(v)...)
		}
	}
	if len(alternatives) == 0 && s.words[s.node+schema.NodeEnum] == 0 {
		s.words[s.node+schema.NodeEnum] = s.enumGroup(words, text)
		return
	}
	// What stands beside others is a schema of its own.
	if len(words) > 0 {
		n := s.bare()
		s.words[n+schema.NodeEnum] = s.enumGroup(words, text)
		alternatives = append(alternatives, n)
	}
	n := s.bare()
	s.words[n+schema.NodeApply] = s.applyGroup(nil, alternatives, nil, [4]uint32{}, "one of "+text, "")
	s.all = append(s.all, n)
}

// bare makes a node that asks nothing.
func (c *compiler) bare() uint32 {
	n := c.put(make([]uint32, schema.NodeWords))
	c.words[n+schema.NodeTypes] = schema.AnyType
	c.list = append(c.list, made{node: n})
	return n
}

func (s *object) enumGroup(values []uint32, text string) uint32 {
	at, n := s.put2("one of " + text)
	return s.put(append([]uint32{uint32(len(values) / schema.EnumWords), at, n}, values...))
}
