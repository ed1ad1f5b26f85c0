package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// APIVersion is info.version of every document: that of the API, by semantic versioning.
// What builds a process says at /v1/health.
const APIVersion = "1.0.0"

// What fragments say of an operation beyond OpenAPI; documents do not have it.
const (
	// internalKey marks what is for browsers, or only answers 501: it is served, and
	// not described.
	internalKey = "x-internal"
	// onceKey is false of a POST that knows no Idempotency-Key.
	onceKey = "x-once"
	// examplesKey holds the bodies that a fragment shows, by operationId.
	examplesKey = "x-examples"
)

// settle makes of what fragments say what generators of clients can take: tags, names,
// no two of one name, and no default that makes a field required.
func (d *Document) settle() {
	for path, v := range d.Paths {
		item, _ := v.(object)
		for _, verb := range verbs {
			if op, ok := item[verb].(object); ok {
				if _, tagged := op["tags"]; !tagged {
					op["tags"] = []any{tag(path)}
				}
				d.repeatable(verb, op)
			}
		}
	}
	d.settleNames()
}

// settleNames names everything, however often it is called.
func (d *Document) settleNames() {
	d.name()
	schemas, _ := d.Components["schemas"].(object)
	for name, s := range schemas {
		schemas[name] = plain(s)
	}
	d.distinct()
	d.constants()
}

// tag is what an operation is about, as its path says: /v1/auth/keys/{id} is of keys.
func tag(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for _, skipped := range []string{"admin", "v1", "auth"} {
		if len(parts) > 1 && parts[0] == skipped {
			parts = parts[1:]
		}
	}
	switch parts[0] {
	case ".well-known", "openapi.json", "docs", "":
		return "discovery"
	case "origin-health":
		return "health"
	}
	return parts[0]
}

// idempotency describes the header by which a POST takes effect once; see
// platform/http/idempotency.
var idempotency = object{
	"name": "Idempotency-Key", "in": "header",
	"description": "Has the request take effect once: for 24 hours, repetitions with this key get its answer. A UUID is a good one.",
	"schema":      object{"type": "string", "minLength": 1, "maxLength": 255}, "example": "6f1c3a52-8f0e-4f0b-9a57-0d1f6c2e4b11",
}

// repeatable says of a POST that it takes an Idempotency-Key, unless its fragment
// says that it does not.
func (d *Document) repeatable(verb string, op object) {
	once, said := op[onceKey].(bool)
	delete(op, onceKey)
	if open, ok := op["security"].([]any); verb != "post" || said && !once || ok && len(open) == 0 || op[internalKey] == true {
		return
	}
	of, _ := d.Components["parameters"].(object)
	if of == nil {
		of = object{}
		d.Components["parameters"] = of
	}
	of["IdempotencyKey"] = idempotency
	have, _ := op["parameters"].([]any)
	op["parameters"] = append(slices.Clone(have), object{"$ref": "#/components/parameters/IdempotencyKey"})
}

// plain returns a schema without defaults of properties, which some generators take for
// a promise that the property is there: they are said in words. Types of many kinds are
// said as generators know them.
func plain(v any) any {
	s, ok := v.(object)
	if !ok {
		if list, ok := v.([]any); ok {
			for i := range list {
				list[i] = plain(list[i])
			}
		}
		return v
	}
	for k, x := range s {
		if k != "example" && k != "default" && k != "enum" && k != "const" {
			s[k] = plain(x)
		}
	}
	if properties, ok := s["properties"].(object); ok {
		for name, p := range properties {
			properties[name] = told(p)
		}
	}
	if d, ok := s["description"].(string); ok {
		s["description"] = strings.ReplaceAll(d, "*/", "* /") // which would end the comment that it is put into
	}
	return kinds(s)
}

// told is a property whose default is told in its description.
func told(v any) any {
	p, ok := v.(object)
	value, has := p["default"]
	if !ok || !has || isSchema(value) {
		return v
	}
	out := maps.Clone(p)
	delete(out, "default")
	text, err := json.Marshal(value)
	if err != nil {
		return v // it was read from JSON or YAML
	}
	said := fmt.Sprintf("Default: %s.", text)
	if d, _ := out["description"].(string); d != "" {
		said = strings.TrimRight(d, ".") + ". " + said
	}
	out["description"] = said
	return out
}

// isSchema reports whether a property that is named default is meant.
func isSchema(v any) bool {
	o, ok := v.(object)
	return ok && (o["type"] != nil || o["$ref"] != nil)
}

// kinds says that anything may come where a schema lists every type, and writes a
// choice of several as alternatives.
func kinds(s object) object {
	list, _ := s["type"].([]any)
	if len(list) >= 5 {
		delete(s, "type")
		return s
	}
	if len(list) > 2 || len(list) == 2 && !slices.Contains(list, any("null")) {
		delete(s, "type")
		var any []any
		for _, t := range list {
			any = append(any, object{"type": t})
		}
		s["anyOf"] = any
	}
	return s
}

// distinct renames the parameters, responses and request bodies that have the name of a
// schema: generators make a type of each.
func (d *Document) distinct() {
	schemas, _ := d.Components["schemas"].(object)
	taken := map[string]bool{}
	for name := range schemas {
		taken[strings.ToLower(name)] = true
	}
	renamed := map[string]string{}
	for _, k := range []struct{ kind, suffix string }{{"parameters", "Parameter"}, {"responses", "Answer"}, {"requestBodies", "Form"}} {
		of, _ := d.Components[k.kind].(object)
		for _, name := range slices.Sorted(maps.Keys(of)) {
			to := name
			for taken[strings.ToLower(to)] {
				to += k.suffix
			}
			taken[strings.ToLower(to)] = true
			if to == name {
				continue
			}
			of[to] = of[name]
			delete(of, name)
			renamed["#/components/"+k.kind+"/"+name] = "#/components/" + k.kind + "/" + to
		}
	}
	d.Paths, _ = pointed(d.Paths, renamed).(object)
	d.Components, _ = pointed(d.Components, renamed).(object)
}

// constants names the values of enumerations that share some, for languages in which
// constants of all types stand side by side.
func (d *Document) constants() {
	schemas, _ := d.Components["schemas"].(object)
	used := map[string]int{}
	each := func(f func(name string, s object, values []any)) {
		for name, v := range schemas {
			s, _ := v.(object)
			if values, ok := s["enum"].([]any); ok && s["type"] == "string" {
				f(name, s, values)
			}
		}
	}
	each(func(_ string, _ object, values []any) {
		for _, v := range values {
			used[fmt.Sprint(v)]++
		}
	})
	each(func(name string, s object, values []any) {
		var names []any
		shared := false
		for _, v := range values {
			shared = shared || used[fmt.Sprint(v)] > 1
			names = append(names, name+pascal(fmt.Sprint(v)))
		}
		if shared {
			s["x-enum-varnames"] = names
		}
	})
}

// exemplify puts the examples of a fragment to its operations. It fails when one is of
// no operation with a JSON body.
func exemplify(doc object) error {
	left, _ := doc[examplesKey].(object)
	left = maps.Clone(left)
	paths, _ := doc["paths"].(object)
	for _, v := range paths {
		item, _ := v.(object)
		for _, verb := range verbs {
			op, _ := item[verb].(object)
			id, _ := op["operationId"].(string)
			body, _ := op["requestBody"].(object)
			content, _ := body["content"].(object)
			media, ok := content["application/json"].(object)
			if example, has := left[id]; has && ok {
				media["example"] = example
				delete(left, id)
			}
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%s names operations without a JSON body: %s", examplesKey, strings.Join(slices.Sorted(maps.Keys(left)), ", "))
	}
	return nil
}

// shown is a path's item without the operations that are not described, and whether
// any is left.
func shown(item object) (object, bool) {
	kept, found := object{}, false
	for k, v := range item {
		op, ok := v.(object)
		if ok && slices.Contains(verbs, k) {
			if op[internalKey] == true {
				continue
			}
			found = true
		}
		kept[k] = v
	}
	return kept, found
}

// tags lists those of the operations of paths, as a document does.
func tags(paths object) []any {
	have := map[string]bool{}
	for _, v := range paths {
		item, _ := v.(object)
		for _, verb := range verbs {
			op, _ := item[verb].(object)
			for _, t := range list(op["tags"]) {
				if name, ok := t.(string); ok {
					have[name] = true
				}
			}
		}
	}
	out := []any{}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		out = append(out, object{"name": name})
	}
	return out
}

// list is v, where it is one.
func list(v any) []any {
	l, _ := v.([]any)
	return l
}
