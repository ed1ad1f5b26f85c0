package kong

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
)

const (
	// MaxBytes bounds a file.
	MaxBytes = 2 << 20
	// maxNodes bounds what it holds once aliases stand for what they name.
	maxNodes = 200_000
	// maxExcerpt bounds what an error shows of a file, in bytes.
	maxExcerpt = 500
)

// kind is what a node is.
type kind uint8

const (
	null kind = iota
	scalar
	list
	object
)

// node is a value of a file, which knows where it stands, and whether anybody has
// looked at it: what nobody has is not translated, and reported.
type node struct {
	kind   kind
	text   string // of a scalar
	path   string // such as services[0].routes[1]
	line   int
	items  []*node // of a list
	names  []string
	fields map[string]*node // of an object
	used   bool
}

// parseTree reads YAML, of which JSON is a part.
func parseTree(b []byte) (*node, error) {
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("the file is larger than %d bytes", MaxBytes)
	}
	if config.TooDeep(b) {
		return nil, errors.New("the file is nested too deeply")
	}
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil, fmt.Errorf("the file is not valid YAML: %s", decision.Cut(yaml.FormatError(err, false, false), maxExcerpt))
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, errors.New("the file must hold one YAML document")
	}
	t := &builder{anchors: map[string]ast.Node{}, open: map[string]bool{}}
	n := t.node(file.Docs[0].Body, "")
	if t.err != nil {
		return nil, t.err
	}
	if n.kind != object {
		return nil, errors.New("the file is not an object")
	}
	return n, nil
}

// builder makes nodes, with aliases in place, and no more than maxNodes of them.
type builder struct {
	anchors map[string]ast.Node
	open    map[string]bool // anchors whose values are being made
	count   int
	err     error
}

// node makes the node of y.
func (t *builder) node(y ast.Node, path string) *node {
	n := &node{path: path}
	if t.count++; t.count > maxNodes && t.err == nil {
		t.err = fmt.Errorf("the file holds more than %d values", maxNodes)
	}
	if y == nil || t.err != nil {
		return n
	}
	if token := y.GetToken(); token != nil && token.Position != nil {
		n.line = token.Position.Line
	}
	switch y := y.(type) {
	case *ast.AnchorNode:
		name := y.Name.String()
		t.anchors[name] = y.Value
		t.open[name] = true
		made := t.node(y.Value, path)
		delete(t.open, name)
		return made
	case *ast.AliasNode:
		return t.alias(y, n, path)
	case *ast.TagNode:
		return t.node(y.Value, path)
	case *ast.MappingNode:
		t.object(n, y.Values)
	case *ast.MappingValueNode:
		t.object(n, []*ast.MappingValueNode{y})
	case *ast.SequenceNode:
		n.kind = list
		for i, item := range y.Values {
			n.items = append(n.items, t.node(item, path+"["+strconv.Itoa(i)+"]"))
		}
	case *ast.NullNode:
	case *ast.LiteralNode:
		n.kind, n.text = scalar, y.Value.Value
	case ast.ScalarNode:
		n.kind, n.text = scalar, fmt.Sprint(y.GetValue())
		if s, ok := y.(*ast.StringNode); ok {
			n.text = s.Value
		} else if token := y.GetToken(); token != nil {
			n.text = token.Value // a number as it is written
		}
	default:
		t.err = fmt.Errorf("line %d: a %s is not expected", n.line, y.Type())
	}
	return n
}

// alias makes the node that an alias stands for.
func (t *builder) alias(y *ast.AliasNode, n *node, path string) *node {
	name := y.Value.String()
	named, ok := t.anchors[name]
	if !ok || t.open[name] {
		t.err = fmt.Errorf("line %d: the alias %s names nothing before it", n.line, decision.Cut(name, 100))
		return n
	}
	t.open[name] = true
	made := t.node(named, path)
	delete(t.open, name)
	return made
}

// object gives n fields, of which those of a merge key (<<) yield to others.
func (t *builder) object(n *node, values []*ast.MappingValueNode) {
	n.kind, n.fields = object, make(map[string]*node, len(values))
	var merged []*node
	for _, v := range values {
		if v.Key.IsMergeKey() {
			from := t.node(v.Value, n.path)
			if from.kind == list {
				merged = append(merged, from.items...)
			} else {
				merged = append(merged, from)
			}
			continue
		}
		name := keyText(v.Key)
		path := name
		if n.path != "" {
			path = n.path + "." + name
		}
		field := t.node(v.Value, path)
		if token := v.Key.GetToken(); token != nil && token.Position != nil && field.kind != scalar {
			field.line = token.Position.Line
		}
		n.set(name, field)
	}
	for _, from := range merged {
		for _, name := range from.names {
			if n.fields[name] == nil {
				n.set(name, from.fields[name])
			}
		}
	}
}

// keyText is the name of a field, without quotes.
func keyText(k ast.MapKeyNode) string {
	if token := k.GetToken(); token != nil {
		return decision.Cut(token.Value, 100)
	}
	return decision.Cut(k.String(), 100)
}

func (n *node) set(name string, field *node) {
	if n.fields[name] == nil {
		n.names = append(n.names, name)
	}
	n.fields[name] = field
}

// nothing is what absent fields are.
var nothing = &node{used: true}

// get returns a field, which is used from then on; nothing when there is none.
func (n *node) get(name string) *node {
	if f := n.fields[name]; f != nil {
		f.used = true
		return f
	}
	return nothing
}

// str is a scalar field as text; "" when there is none.
func (n *node) str(name string) string {
	if f := n.get(name); f.kind == scalar {
		return f.text
	}
	return ""
}

// number is a field as an integer; ok is false when it is none.
func (n *node) number(name string) (v int64, ok bool) {
	v, err := strconv.ParseInt(strings.TrimSuffix(n.str(name), ".0"), 10, 64)
	return v, err == nil
}

// is reports whether a field is true; def when there is none.
func (n *node) is(name string, def bool) bool {
	switch strings.ToLower(n.str(name)) {
	case "true", "yes", "on":
		return true
	case "false", "no", "off":
		return false
	}
	return def
}

// strs are the scalars of a field: a list, or one of them.
func (n *node) strs(name string) []string {
	f := n.get(name)
	if f.kind == scalar {
		return []string{f.text}
	}
	var texts []string
	for _, item := range f.items {
		if item.used = true; item.kind == scalar {
			texts = append(texts, item.text)
		}
	}
	return texts
}

// each are the objects of a list.
func (n *node) each(name string) []*node {
	var found []*node
	for _, item := range n.get(name).items {
		if item.kind == object {
			item.used = true
			found = append(found, item)
		}
	}
	return found
}

// ref is the entity that a field names: by a text, or by the name or id of an object.
func (n *node) ref(name string) string {
	f := n.get(name)
	if f.kind == scalar {
		return f.text
	}
	for _, by := range []string{"name", "username", "id"} {
		if text := f.str(by); text != "" {
			return text
		}
	}
	return ""
}

// ignore marks all of n as looked at.
func (n *node) ignore() {
	if n == nothing { // which all files share
		return
	}
	n.used = true
	for _, item := range n.items {
		item.ignore()
	}
	for _, f := range n.fields {
		f.ignore()
	}
}
