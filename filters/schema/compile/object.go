package compile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/schema"
)

// object is a schema that is an object, being compiled.
type object struct {
	*compiler
	node  uint32
	place place
	v     map[string]any
	all   []uint32 // nodes that must hold for the same value
}

// annotations say something about values and ask nothing of them.
var annotations = []string{"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment", "$defs", "definitions",
	"contentEncoding", "contentMediaType", "contentSchema", "externalDocs", "xml", "discriminator"}

// unsupported are keywords of JSON Schema and OpenAPI that ask something which is not checked, and
// what to write instead.
var unsupported = map[string]string{
	"unevaluatedProperties": "additionalProperties, beside all of the properties", "unevaluatedItems": "items",
	"$id": "$ref with #/schemas/NAME, or a pointer in the same schema", "$anchor": "$ref with a JSON pointer",
	"$dynamicRef": "$ref", "$dynamicAnchor": "$ref", "$recursiveRef": "$ref", "$recursiveAnchor": "$ref", "$vocabulary": "the keywords of 2020-12",
	"nullable": "type: [TYPE, \"null\"]", "dependencies": "dependentRequired or dependentSchemas", "additionalItems": "items, with prefixItems",
}

// draft is what $schema may say.
const draft = "https://json-schema.org/draft/2020-12/schema"

// keywords are those that are checked, in the groups that are compiled together.
var keywords = []struct {
	group string
	names []string
}{
	{"type", []string{"type"}},
	{"enum", []string{"enum", "const"}},
	{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
	{"string", []string{"minLength", "maxLength", "pattern", "format"}},
	{"array", []string{"minItems", "maxItems", "uniqueItems", "items", "prefixItems", "contains", "minContains", "maxContains"}},
	{"object", []string{"minProperties", "maxProperties", "properties", "patternProperties", "additionalProperties", "propertyNames", "required",
		"dependentRequired", "dependentSchemas"}},
	// What applies to the same value is last, as others add to it.
	{"apply", []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref"}},
}

// supported are all of them.
var supported = func() map[string]bool {
	all := map[string]bool{}
	for _, k := range Supported() {
		all[k] = true
	}
	return all
}()

// Supported lists the keywords that are checked.
func Supported() (list []string) {
	for _, k := range keywords {
		list = append(list, k.names...)
	}
	return list
}

// compile fills in the node.
func (s *object) compile() {
	s.known()
	for _, k := range keywords {
		if slices.ContainsFunc(k.names, func(name string) bool { _, there := s.v[name]; return there }) {
			s.group(k.group)
		}
	}
	if len(s.all) > 0 && s.words[s.node+schema.NodeApply] == 0 {
		s.apply()
	}
}

func (s *object) group(name string) {
	switch name {
	case "type":
		s.types()
	case "enum":
		s.enum()
	case "number":
		s.numbers()
	case "string":
		s.strings()
	case "array":
		s.array()
	case "object":
		s.members()
	case "apply":
		s.apply()
	}
}

// known names the keywords that are not supported.
func (s *object) known() {
	for _, k := range slices.Sorted(maps.Keys(s.v)) {
		if supported[k] || slices.Contains(annotations, k) || strings.HasPrefix(k, "x-") {
			continue
		}
		if k == "$schema" {
			if strings.TrimSuffix(fmt.Sprint(s.v[k]), "#") != draft {
				s.fault(s.place, "is of another draft of JSON Schema", draft)
			}
			continue
		}
		if instead, ok := unsupported[k]; ok {
			s.fault(s.place, fmt.Sprintf("has the keyword %s, which is not supported", k), instead)
		} else {
			s.fault(s.place, fmt.Sprintf("has %s, which is no keyword that is known here", strconv.Quote(k)), "a keyword of JSON Schema 2020-12, or a name that begins with x-")
		}
	}
}

// bad is a fault of a keyword's value.
func (s *object) bad(keyword, expected string) {
	s.fault(s.place.at(keyword), "is not right", expected)
}

var typeBits = map[string]uint32{"null": schema.TypeNull, "boolean": schema.TypeBool, "object": schema.TypeObject, "array": schema.TypeArray,
	"number": schema.TypeNumber | schema.TypeInteger, "integer": schema.TypeInteger, "string": schema.TypeString}

func (s *object) types() {
	list, ok := s.v["type"].([]any)
	if !ok {
		list = []any{s.v["type"]}
	}
	types := uint32(0)
	for _, t := range list {
		name, _ := t.(string)
		if typeBits[name] == 0 {
			s.bad("type", "null, boolean, object, array, number, integer or string, or a list of them")
		}
		types |= typeBits[name]
	}
	s.words[s.node+schema.NodeTypes] = types
}

// count is a keyword's value that counts something; there is false when it is not
// there.
func (s *object) count(keyword string) (n uint32, there bool) {
	v, there := s.v[keyword]
	if !there {
		return 0, false
	}
	number, _ := v.(json.Number)
	d, ok := readDecimal(string(number))
	if !ok || d.negative || d.exp < 0 || len(d.digits)+d.exp > 9 {
		s.bad(keyword, "an integer from 0 to 999999999")
		return 0, true
	}
	i, _ := strconv.Atoi(d.digits + strings.Repeat("0", d.exp))
	return uint32(i), true
}

// bound is count for an upper bound.
func (s *object) bound(keyword string) uint32 {
	if n, there := s.count(keyword); there {
		return n
	}
	return schema.None
}

func (s *object) numbers() {
	w := make([]uint32, schema.NumberWords)
	for k, keyword := range []string{schema.NumberMin: "minimum", schema.NumberOver: "exclusiveMinimum", schema.NumberMax: "maximum", schema.NumberUnder: "exclusiveMaximum", schema.NumberMultiple: "multipleOf"} {
		v, there := s.v[keyword]
		if !there {
			continue
		}
		number, _ := v.(json.Number)
		d, ok := readDecimal(string(number))
		switch {
		case !ok:
			s.bad(keyword, "a number of at most 64 digits")
		case k == schema.NumberMultiple && (d.negative || d.digits == "" || len(d.digits) > 17):
			s.bad(keyword, "a number above 0 of at most 17 digits")
		default:
			w[k] = s.decimal(d)
		}
	}
	s.words[s.node+schema.NodeNumber] = s.put(w)
}

func (s *object) strings() {
	w := make([]uint32, schema.StringWords)
	w[schema.StringMin], _ = s.count("minLength")
	w[schema.StringMax] = s.bound("maxLength")
	if v, there := s.v["format"]; there {
		name, ok := v.(string)
		if !ok {
			s.bad("format", "a string")
		}
		if i := slices.Index(schema.Formats[:], name); i > 0 {
			w[schema.StringFormat] = uint32(i)
		}
	}
	if v, there := s.v["pattern"]; there {
		text, _ := v.(string)
		w[schema.StringPattern] = s.pattern("pattern", text)
		w[schema.StringText], w[schema.StringText+1] = s.put2(text)
	}
	s.words[s.node+schema.NodeString] = s.put(w)
}

func (s *object) array() {
	w := make([]uint32, schema.ArrayWords)
	w[schema.ArrayMin], _ = s.count("minItems")
	w[schema.ArrayMax] = s.bound("maxItems")
	w[schema.ArrayMinContains], w[schema.ArrayMaxContains] = 1, s.bound("maxContains")
	if n, there := s.count("minContains"); there {
		w[schema.ArrayMinContains] = n
	}
	if v, there := s.v["uniqueItems"]; there {
		unique, ok := v.(bool)
		if !ok {
			s.bad("uniqueItems", "true or false")
		}
		if unique {
			w[schema.ArrayUnique] = 1
		}
	}
	w[schema.ArrayItems], w[schema.ArrayContains] = s.below("items"), s.below("contains")
	prefix := s.listed("prefixItems")
	w[schema.ArrayPrefix] = uint32(len(prefix))
	s.words[s.node+schema.NodeArray] = s.put(append(w, prefix...))
}

// below compiles the schema that is a keyword's value; 0: there is none.
func (s *object) below(keyword string) uint32 {
	if v, there := s.v[keyword]; there {
		return s.compiler.node(s.place.at(keyword), v)
	}
	return 0
}

// listed compiles the schemas that a keyword's value lists.
func (s *object) listed(keyword string) (nodes []uint32) {
	v, there := s.v[keyword]
	if !there {
		return nil
	}
	list, _ := v.([]any)
	if len(list) == 0 {
		s.bad(keyword, "a list of schemas")
	}
	for i, v := range list {
		nodes = append(nodes, s.compiler.node(s.place.at(keyword, strconv.Itoa(i)), v))
	}
	return nodes
}
