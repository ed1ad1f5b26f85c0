// Package toolset turns the operations of an OpenAPI document into tools for
// agents, and a tool's arguments into the request that its operation wants. It
// is pure: it reads bytes and returns values.
package toolset

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// object is a JSON object.
type object = map[string]any

// document is an OpenAPI document of version 3.0 or 3.1.
type document struct{ root object }

// MaxDocument bounds the text of a document, in bytes.
const MaxDocument = 32 << 20

// parse reads a document from JSON or YAML.
func parse(text []byte) (document, error) {
	var root object
	if len(text) > MaxDocument {
		return document{}, fmt.Errorf("read the OpenAPI document: it has more than %d bytes", MaxDocument)
	}
	read := yaml.Unmarshal
	if json.Valid(text) {
		read = json.Unmarshal
	}
	if err := read(text, &root); err != nil {
		return document{}, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	if _, ok := root["paths"].(object); !ok {
		return document{}, errors.New("read the OpenAPI document: it has no paths")
	}
	return document{root}, nil
}

// methods are those that operations have, in lower case.
var methods = []string{"get", "post", "put", "patch", "delete"}

// operation is one method of one path.
type operation struct {
	method, path string
	node         object
	params       []object // of the path and of itself, without references
}

// operations lists the document's operations by path and method.
func (d document) operations() []operation {
	var list []operation
	paths := child(d.root, "paths")
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := d.resolve(paths[path])
		for _, m := range methods {
			if node, ok := item[m].(object); ok {
				list = append(list, operation{strings.ToUpper(m), path, node, d.params(item["parameters"], node["parameters"])})
			}
		}
	}
	return list
}

// params joins the parameters of a path with those of an operation, which win.
func (d document) params(lists ...any) []object {
	last := map[[2]string]int{} // by name and place
	var all []object
	for _, l := range lists {
		items, _ := l.([]any)
		for _, item := range items {
			p := d.resolve(item)
			key := [2]string{text(p, "name"), text(p, "in")}
			if i, ok := last[key]; ok {
				all[i] = nil
			}
			last[key] = len(all)
			all = append(all, p)
		}
	}
	return slices.DeleteFunc(all, func(p object) bool { return p == nil })
}

// maxHops bounds a chain of references, which might be a circle.
const maxHops = 16

// resolve follows a reference to the node that it means; a node that is none is
// itself. What is not there is an empty object.
func (d document) resolve(node any) object {
	o, _ := node.(object)
	for range maxHops {
		ref, ok := o["$ref"].(string)
		if !ok {
			break
		}
		o = d.at(ref)
	}
	return o
}

// at returns what a local reference (#/a/b) points to.
func (d document) at(ref string) object {
	o := d.root
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		o = child(o, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
	}
	return o
}

// child is the object under a name; empty when there is none.
func child(o object, name string) object {
	c, _ := o[name].(object)
	return c
}

// text is the string under a name; empty when there is none.
func text(o object, name string) string {
	s, _ := o[name].(string)
	return s
}

// json returns the schema of the JSON form of a body or response; ok is false
// when it has content of other types alone, and schema is nil when it has none.
func (d document) json(body object) (schema object, ok bool) {
	content := child(body, "content")
	if len(content) == 0 {
		return nil, true
	}
	media, ok := content["application/json"].(object)
	if !ok {
		return nil, false
	}
	schema, _ = media["schema"].(object)
	if schema == nil {
		schema = object{}
	}
	return schema, true
}

// success returns the response of the lowest 2xx status.
func (d document) success(op operation) (response object, found bool) {
	responses := child(op.node, "responses")
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		if strings.HasPrefix(status, "2") {
			return d.resolve(responses[status]), true
		}
	}
	return nil, false
}
