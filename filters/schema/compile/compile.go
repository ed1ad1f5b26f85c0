// Package compile makes the tables of package schema of JSON Schemas (2020-12). It
// names every keyword that it does not know or support, and never skips one.
//
// It takes time and memory linear in the schemas that a request leads to, but for
// patterns: each makes an automaton of at most MaxStates states.
package compile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/schema"
)

// Request is what a route's requests must be.
type Request struct {
	Parameters []Parameter
	Body       *Body // nil: bodies are not looked at
}

// Where parameters stand.
const (
	Path   = "path"
	Query  = "query"
	Header = "header"
)

// Parameter is one value of a path, a query or a header.
type Parameter struct {
	At       string // where it stands in the document, for faults
	Name, In string // headers in lower case
	Required bool
	Explode  bool
	Between  byte // what stands between elements of an array
	Segment  int  // of the path, from 0
	Schema   string
}

// Body is the body of a request.
type Body struct {
	Required bool
	Contents []Content // media types of no range before those of one
}

// Content is a media type, in lower case, and what a body of it must be.
type Content struct {
	At, Type string
	Schema   string // empty: bodies of it are not looked at
}

// Fault is what a schema has that cannot be compiled.
type Fault struct{ At, Issue, Expected string }

// Schemas gives the text of a named schema; empty: there is none.
type Schemas func(name string) string

// compiler holds a table in the making.
type compiler struct {
	named  Schemas
	roots  map[string]any    // parsed texts, by name of the root
	nodes  map[string]uint32 // by place of the schema: its root and a JSON pointer
	list   []made
	words  []uint32
	text   []byte
	texts  map[string]uint32 // places, by text
	autos  map[string]uint32 // places of automata, by pattern
	at     string            // of the parameter or body at hand
	faults []Fault
	full   bool
	looks  int // at what types parameters may have
}

// made is a node that was made.
type made struct {
	node  uint32
	place place
	at    string // of the parameter or body that led to it
}

// place is where a schema stands.
type place struct {
	root    string // what names its root; # and a name: a named schema
	pointer string
}

func (p place) at(steps ...string) place {
	for _, s := range steps {
		p.pointer += "/" + escapes.Replace(s)
	}
	return p
}

var escapes, unescapes = strings.NewReplacer("~", "~0", "/", "~1"), strings.NewReplacer("~1", "/", "~0", "~")

// maxFaults bounds what is told of one request.
const maxFaults = 100

// Table compiles a request. It returns nil, and why, when that is not possible.
func Table(r Request, named Schemas) ([]byte, []Fault) {
	c := &compiler{named: named, roots: map[string]any{}, nodes: map[string]uint32{}, texts: map[string]uint32{}, autos: map[string]uint32{},
		words: make([]uint32, schema.HeadWords)}
	request := make([]uint32, schema.RequestWords)
	request[schema.RequestBody] = schema.None
	if r.Body != nil {
		request[schema.RequestBody] = 0
		if r.Body.Required {
			request[schema.RequestBody] = 1
		}
		c.contents(r.Body.Contents, request[schema.RequestContents:])
	}
	for at, in := range map[int]string{schema.RequestPath: Path, schema.RequestQuery: Query, schema.RequestHeaders: Header} {
		c.parameters(r.Parameters, in, request[at:])
	}
	c.words[1] = c.put(request)
	if len(c.faults) == 0 {
		c.checkCycles()
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	out := schema.Encode(c.words, c.text)
	if len(out) > schema.MaxTable {
		c.at = ""
		c.fault(place{}, fmt.Sprintf("make a table of %d bytes", len(out)), fmt.Sprintf("at most %d: fewer or simpler schemas", schema.MaxTable))
		return nil, c.faults
	}
	return out, nil
}

func (c *compiler) contents(list []Content, into []uint32) {
	var words []uint32
	for _, t := range list {
		c.at = t.At
		node := uint32(0)
		if t.Schema != "" {
			node, _ = c.root(t.Schema)
		}
		at, n := c.put2(t.Type)
		words = append(words, at, n, node)
	}
	into[0], into[1] = uint32(len(list)), c.put(words)
}

func (c *compiler) parameters(list []Parameter, in string, into []uint32) {
	list = slices.DeleteFunc(slices.Clone(list), func(p Parameter) bool { return p.In != in })
	slices.SortStableFunc(list, func(a, b Parameter) int {
		if in == Path {
			return a.Segment - b.Segment
		}
		return cmp.Compare(schema.Hash(a.Name), schema.Hash(b.Name))
	})
	var words []uint32
	for _, p := range list {
		c.at = p.At
		w := make([]uint32, schema.ParameterWords)
		w[schema.ParameterHash] = schema.Hash(p.Name)
		w[schema.ParameterName], w[schema.ParameterName+1] = c.put2(p.Name)
		if p.Required {
			w[schema.ParameterFlags] |= schema.FlagRequired
		}
		if p.Explode {
			w[schema.ParameterFlags] |= schema.FlagExplode
		}
		w[schema.ParameterBetween], w[schema.ParameterSegment] = uint32(p.Between), uint32(p.Segment)
		var root place
		w[schema.ParameterNode], root = c.root(p.Schema)
		w[schema.ParameterTypes], w[schema.ParameterItems] = c.textTypes(root)
		words = append(words, w...)
	}
	into[0], into[1] = uint32(len(list)), c.put(words)
}

// root compiles a schema that stands in a request, as a root of its own.
func (c *compiler) root(text string) (uint32, place) {
	p := place{root: strconv.Itoa(len(c.roots))}
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		c.fault(p, "is not JSON", "a JSON Schema")
	}
	c.roots[p.root] = v
	return c.node(p, v), p
}

// fault notes what is wrong with the schema at p.
func (c *compiler) fault(p place, issue, expected string) {
	if len(c.faults) >= maxFaults {
		return
	}
	if p.pointer != "" {
		issue = fmt.Sprintf("at %s %s", p.pointer, issue)
	}
	if name, ok := strings.CutPrefix(p.root, "#"); ok {
		issue = fmt.Sprintf("refers to schemas.%s, which %s", name, issue)
	}
	f := Fault{c.at, issue, expected}
	if !slices.Contains(c.faults, f) {
		c.faults = append(c.faults, f)
	}
}

// put appends words and returns their place.
func (c *compiler) put(words []uint32) uint32 {
	at := len(c.words)
	c.words = append(c.words, words...)
	return uint32(at)
}

// put2 returns the place and the length of a text, which is put in the table once.
func (c *compiler) put2(text string) (at, n uint32) {
	at, ok := c.texts[text]
	if !ok {
		at = uint32(len(c.text))
		c.text = append(c.text, text...)
		c.texts[text] = at
	}
	return at, uint32(len(text))
}

// node compiles the schema v, which stands at p, unless it was.
func (c *compiler) node(p place, v any) uint32 {
	key := p.root + "\x00" + p.pointer
	if n, ok := c.nodes[key]; ok {
		return n
	}
	if len(c.list) >= schema.MaxNodes {
		if !c.full {
			c.full = true
			c.fault(place{}, "leads to too many schemas", fmt.Sprintf("at most %d, those that $ref leads to included", schema.MaxNodes))
		}
		return 0
	}
	n := c.put(make([]uint32, schema.NodeWords))
	c.nodes[key] = n
	c.list = append(c.list, made{n, p, c.at})
	switch v := v.(type) {
	case bool:
		if v {
			c.words[n+schema.NodeTypes] = schema.AnyType
		}
	case map[string]any:
		c.words[n+schema.NodeTypes] = schema.AnyType
		s := &object{compiler: c, node: n, place: p, v: v}
		s.compile()
	default:
		c.fault(p, "is not a schema", "an object, true or false")
	}
	return n
}
