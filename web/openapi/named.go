package openapi

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// naming gives every object that a schema describes in place a name of its own, for
// generators make one type of each name and none, or one that is called
// InlineObject7, of what has none.
type naming struct {
	schemas object
	before  object // schemas as they were
	// made are the names given so far, by property, to find an equal object again.
	made map[string][]string
	// taken are all names in lower case: generators tell no more apart.
	taken map[string]bool
}

// name names what d describes in place: bodies after their operation (CreateKeyBody,
// ValidateKeyResult), pages of a list after what they list (KeyList), and what is
// within a schema after it and its property (StreamPlayback). Time and memory are
// linear in the document, but for equal objects under one property, which are compared.
func (d *Document) name() {
	schemas, _ := d.Components["schemas"].(object)
	if schemas == nil {
		schemas = object{}
		d.Components["schemas"] = schemas
	}
	n := &naming{schemas: schemas, before: maps.Clone(schemas), made: map[string][]string{}, taken: map[string]bool{}}
	for name := range schemas {
		n.taken[strings.ToLower(name)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		schemas[name] = n.within(schemas[name], name)
	}
	for _, kind := range []string{"responses", "requestBodies"} {
		of, _ := d.Components[kind].(object)
		for _, name := range slices.Sorted(maps.Keys(of)) {
			n.contents(of[name], name)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		item, _ := d.Paths[path].(object)
		for _, verb := range verbs {
			op, ok := item[verb].(object)
			if !ok {
				continue
			}
			id, _ := op["operationId"].(string)
			n.contents(op["requestBody"], title(id)+"Body")
			responses, _ := op["responses"].(object)
			for _, status := range slices.Sorted(maps.Keys(responses)) {
				n.contents(responses[status], title(id)+"Result")
			}
		}
	}
}

// contents names the JSON bodies of a request or a response.
func (n *naming) contents(v any, name string) {
	message, _ := v.(object)
	content, _ := message["content"].(object)
	for _, kind := range slices.Sorted(maps.Keys(content)) {
		media, _ := content[kind].(object)
		if s, ok := media["schema"].(object); ok && strings.Contains(kind, "json") {
			media["schema"] = n.named(s, n.listName(s, name), "")
		}
	}
}

// listName is name, or, of a page of a list, that of what it lists.
func (n *naming) listName(s object, name string) string {
	of := func(s object) string {
		properties, _ := s["properties"].(object)
		data, _ := properties["data"].(object)
		items, _ := data["items"].(object)
		ref, _ := items["$ref"].(string)
		return strings.TrimPrefix(ref, "#/components/schemas/")
	}
	item := of(s)
	all, _ := s["allOf"].([]any)
	for _, part := range all {
		if p, ok := part.(object); ok && item == "" {
			item = of(p)
		}
	}
	if have, taken := n.schemas[item+"List"]; item == "" || taken && !reflect.DeepEqual(have, s) {
		return name
	}
	return item + "List"
}

// composed reports whether s is an object that wants a name.
func composed(s object) bool {
	if properties, _ := s["properties"].(object); len(properties) > 0 {
		return true
	}
	for _, k := range []string{"allOf", "oneOf", "anyOf"} {
		if all, _ := s[k].([]any); len(all) > 1 && !orNull(all) {
			return true
		}
	}
	return false
}

// orNull reports whether one of two alternatives is null.
func orNull(all []any) bool {
	return len(all) == 2 && slices.ContainsFunc(all, func(v any) bool { s, _ := v.(object); return s["type"] == "null" })
}

// named returns s, or a reference to it under a name of its own. property is where it
// stands, and empty of bodies; two equal bodies of one name are one, and so are equal
// objects of the name pagination.
func (n *naming) named(s object, name, property string) object {
	inner, null := notNull(s)
	inner, _ = n.within(n.narrowed(inner), name).(object)
	if !composed(inner) {
		if null {
			return s // a map, or anything
		}
		return inner
	}
	ref := object{"$ref": "#/components/schemas/" + n.keep(inner, name, property)}
	if null {
		return object{"anyOf": []any{ref, object{"type": "null"}}}
	}
	return ref
}

// narrowed is s as one object, where it takes another one and says more of a property
// of that, as pages of lists do: few generators can have that of two.
func (n *naming) narrowed(s object) object {
	all, _ := s["allOf"].([]any)
	if len(all) != 2 {
		return s
	}
	first, _ := all[0].(object)
	ref, _ := first["$ref"].(string)
	base, _ := n.schemas[strings.TrimPrefix(ref, "#/components/schemas/")].(object)
	more, _ := all[1].(object)
	have, _ := base["properties"].(object)
	added, _ := more["properties"].(object)
	shared := false
	for name := range added {
		shared = shared || have[name] != nil
	}
	if !shared {
		return s
	}
	out := maps.Clone(base)
	properties := maps.Clone(have)
	maps.Copy(properties, added)
	out["properties"] = properties
	required := slices.Clone(list(base["required"]))
	for _, name := range list(more["required"]) {
		if !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	out["required"] = required
	return out
}

// notNull is what s says of values that are not null, and whether it allows null.
func notNull(s object) (object, bool) {
	kinds, _ := s["type"].([]any)
	if len(kinds) != 2 || !slices.Contains(kinds, any("null")) {
		return s, false
	}
	out := maps.Clone(s)
	out["type"] = kinds[0]
	if kinds[0] == "null" {
		out["type"] = kinds[1]
	}
	return out, true
}

// keep stores s under name, or under another one where that is taken by something else.
func (n *naming) keep(s object, name, property string) string {
	of := property
	if property != "pagination" {
		of = " " + name
	}
	for _, made := range n.made[of] {
		if reflect.DeepEqual(n.schemas[made], s) {
			return made
		}
	}
	if have, ok := n.schemas[name]; ok && property == "" && reflect.DeepEqual(have, s) {
		return name
	}
	for n.taken[strings.ToLower(name)] {
		name += "Object"
	}
	n.schemas[name], n.taken[strings.ToLower(name)] = s, true
	n.made[of] = append(n.made[of], name)
	return name
}

// within names what a schema describes in place.
func (n *naming) within(v any, name string) any {
	s, ok := v.(object)
	if !ok {
		return v
	}
	out := maps.Clone(s)
	if properties, ok := s["properties"].(object); ok {
		inner := make(object, len(properties))
		for _, p := range slices.Sorted(maps.Keys(properties)) {
			inner[p] = n.part(properties[p], n.partName(name, p), p)
		}
		out["properties"] = inner
	}
	if items, ok := s["items"]; ok {
		out["items"] = n.part(items, singular(name), "items of "+name)
	}
	if more, ok := s["additionalProperties"].(object); ok {
		out["additionalProperties"] = n.part(more, singular(name), "values of "+name)
	}
	for _, k := range []string{"allOf", "oneOf", "anyOf"} {
		all, _ := s[k].([]any)
		for i := range all {
			if all, _ = out[k].([]any); i == 0 {
				all = slices.Clone(all)
				out[k] = all
			}
			if k == "anyOf" && orNull(all) {
				all[i] = n.part(all[i], name, k+name)
			} else {
				all[i] = n.within(all[i], name)
			}
		}
	}
	return out
}

// partName is what a property of the schema that is called name is called.
func (n *naming) partName(name, property string) string {
	p := pascal(property)
	switch {
	case property == "data":
		return name
	case property == "pagination" && !n.taken["pagination"]:
		return p
	case strings.HasSuffix(name, p):
		return name + "Object"
	}
	return name + p
}

// part names a schema within another one. What has a name of its own already, beside
// what describes it in place, is known by that.
func (n *naming) part(v any, name, property string) any {
	s, ok := v.(object)
	if !ok {
		return v
	}
	if ref, _ := s["$ref"].(string); ref != "" || !composed(s) {
		return n.named(s, name, property)
	}
	for own := name; own != ""; own = own[1:] {
		if have, ok := n.before[own]; ok && own != name && reflect.DeepEqual(have, v) {
			return object{"$ref": "#/components/schemas/" + own}
		}
	}
	return n.named(s, name, property)
}
