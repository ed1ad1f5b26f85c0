// Package openapi makes the one description of the public API. Packages keep
// theirs beside their handlers, and their tests hold it against what is served;
// this package joins those, keeps what the configuration in force leads to, and
// says of each operation what its route asks of the caller.
package openapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Fragment describes the routes of one product.
type Fragment struct {
	// Name goes before the name of a component that another fragment has with
	// other contents.
	Name string
	// Product is the product of the configuration that serves it.
	Product string
	// YAML is an OpenAPI document, 3.0 or 3.1.
	YAML []byte
}

// object is a JSON object.
type object = map[string]any

// Document is a joined description: OpenAPI 3.1 as JSON values.
type Document struct {
	Paths      object
	Components object
	// product of each path, by its place among Paths.
	product map[string]string
	owners  map[string]string // products of operations that were imported, by method and path
}

// shared are the components that mean the same everywhere: the first fragment's
// stand for all.
var shared = []string{"Error", "key"}

// Join reads all fragments as OpenAPI 3.1. It fails when one cannot be read, or
// two describe the same operation of the same product.
func Join(fragments ...Fragment) (*Document, error) {
	d := &Document{Paths: object{}, Components: object{}, product: map[string]string{}}
	for _, f := range fragments {
		var doc object
		if err := yaml.Unmarshal(f.YAML, &doc); err != nil {
			return nil, fmt.Errorf("description of %s: %w", f.Name, err)
		}
		doc, ok := modern(doc).(object)
		if !ok {
			return nil, fmt.Errorf("description of %s is not an object", f.Name)
		}
		if err := d.add(f, doc); err != nil {
			return nil, fmt.Errorf("description of %s: %w", f.Name, err)
		}
	}
	d.settle()
	return d, nil
}

// add takes the components of doc, under new names where they clash, and then
// its paths.
func (d *Document) add(f Fragment, doc object) error {
	components, _ := doc["components"].(object)
	renamed := map[string]string{}
	for _, kind := range slices.Sorted(maps.Keys(components)) {
		of, _ := components[kind].(object)
		into, _ := d.Components[kind].(object)
		for name, c := range of {
			have, taken := into[name]
			if taken && !slices.Contains(shared, name) && !reflect.DeepEqual(have, c) {
				renamed["#/components/"+kind+"/"+name] = "#/components/" + kind + "/" + title(f.Name) + name
			}
		}
	}
	if err := exemplify(doc); err != nil {
		return err
	}
	doc, _ = pointed(doc, renamed).(object)
	components, _ = doc["components"].(object)
	for kind, v := range components {
		of, _ := v.(object)
		into, _ := d.Components[kind].(object)
		if into == nil {
			into = object{}
			d.Components[kind] = into
		}
		for name, c := range of {
			if to, ok := renamed["#/components/"+kind+"/"+name]; ok {
				name = to[strings.LastIndexByte(to, '/')+1:]
			}
			if _, taken := into[name]; !taken {
				into[name] = c
			}
		}
	}
	return d.addPaths(f, doc)
}

func (d *Document) addPaths(f Fragment, doc object) error {
	paths, _ := doc["paths"].(object)
	for path, item := range paths {
		if have, ok := d.product[path]; ok && have == f.Product {
			return fmt.Errorf("%s is described twice", path)
		} else if ok {
			continue // another product's path of that name: the first fragment's stands
		}
		d.Paths[path], d.product[path] = item, f.Product
	}
	return nil
}

// modern turns what 3.0 says in its own way into JSON Schema, as 3.1 wants it.
func modern(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = modern(v[i])
		}
		return out
	case object:
		out := make(object, len(v))
		for k, x := range v {
			out[k] = modern(x)
		}
		return nullable(out)
	default:
		return v
	}
}

// nullable says of a schema that its values may be null.
func nullable(schema object) object {
	null, ok := schema["nullable"].(bool)
	if !ok {
		return schema
	}
	delete(schema, "nullable")
	if !null {
		return schema
	}
	if enum, ok := schema["enum"].([]any); ok {
		schema["enum"] = append(enum, nil)
	}
	if t, ok := schema["type"].(string); ok {
		schema["type"] = []any{t, "null"}
		return schema
	}
	return object{"anyOf": []any{schema, object{"type": "null"}}}
}

// pointed returns v with its references renamed.
func pointed(v any, renamed map[string]string) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = pointed(v[i], renamed)
		}
		return out
	case object:
		out := make(object, len(v))
		for k, x := range v {
			out[k] = pointed(x, renamed)
		}
		if ref, ok := out["$ref"].(string); ok && renamed[ref] != "" {
			out["$ref"] = renamed[ref]
		}
		return out
	default:
		return v
	}
}

func title(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
