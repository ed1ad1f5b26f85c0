package document

import (
	"net/textproto"
	"slices"
	"strings"
)

// ignored are header parameters that OpenAPI has in other places.
var ignored = map[string]bool{"Accept": true, "Content-Type": true, "Authorization": true}

// kinds are the media types of the first list that there is; JSON where there is none.
func kinds(lists ...any) []string {
	for _, l := range lists {
		if all := texts(l); len(all) > 0 {
			out := make([]string, 0, len(all))
			for _, kind := range all {
				kind, _, _ = strings.Cut(kind, ";")
				out = append(out, strings.ToLower(strings.TrimSpace(kind)))
			}
			return unique(out)
		}
	}
	return []string{"application/json"}
}

// parameters returns the parameters of an operation, its own before those of its
// path, and the body that those of Swagger 2 make.
func (r *reader) parameters(f *file, op *Operation, item, node, root Object) (params []any, body Object) {
	type key struct{ name, in string }
	seen := map[key]bool{}
	var form []Object
	for _, list := range []any{node["parameters"], item["parameters"]} {
		all, _ := list.([]any)
		for _, v := range all {
			at, p := r.resolve(f, v)
			k := key{str(p["name"]), str(p["in"])}
			if k.in == "header" {
				k.name = textproto.CanonicalMIMEHeaderKey(k.name)
			}
			if seen[k] || k.name == "" || k.in == "header" && ignored[k.name] {
				continue
			}
			seen[k] = true
			where := op.Method + " " + op.Path
			switch k.in {
			case "body":
				body = r.bodyOf(at, p, kinds(node["consumes"], root["consumes"]))
			case "formData":
				form = append(form, r.formField(at, p))
			case "path":
				if strings.Contains(op.Path, "{"+k.name+"}") {
					params = append(params, r.parameter(at, p))
				}
			case "query", "header":
				params = append(params, r.parameter(at, p))
			case "cookie":
				params = append(params, r.parameter(at, p))
				r.note(where, "cookie parameters, which tools of agents cannot send")
			default:
				r.note(where, "parameters that are in neither path, query, header nor cookie: left out")
			}
		}
	}
	for _, v := range variable.FindAllString(op.Path, -1) { // each has a value, whether or not the document says so
		if name := v[1 : len(v)-1]; !seen[key{name, "path"}] {
			seen[key{name, "path"}] = true
			params = append(params, Object{"name": name, "in": "path", "required": true, "schema": Object{"type": "string"}})
		}
	}
	if len(form) > 0 {
		body = formBody(form, kinds(node["consumes"], root["consumes"]))
	}
	return params, body
}

// parameter returns a parameter in the one form.
func (r *reader) parameter(f *file, p Object) Object {
	out := Object{"name": p["name"], "in": p["in"]}
	if s := str(p["description"]); s != "" {
		out["description"] = s
	}
	if p["required"] == true || p["in"] == "path" {
		out["required"] = true
	}
	if p["deprecated"] == true {
		out["deprecated"] = true
	}
	if p["allowEmptyValue"] == true && p["in"] == "query" {
		out["allowEmptyValue"] = true
	}
	switch content := child(p, "content"); {
	case f.two:
		out["schema"] = r.schema(f, p)
		if str(p["type"]) == "array" {
			collection(out, str(p["collectionFormat"]))
		}
		delete(child(out, "schema"), "description")
	case len(content) > 0:
		out["content"] = r.content(f, content)
	default:
		out["schema"] = r.schema(f, p["schema"])
		if s := str(p["style"]); s != "" {
			out["style"] = s
		}
		if b, ok := p["explode"].(bool); ok {
			out["explode"] = b
		}
	}
	return out
}

// collection sets how the array is written that a parameter of Swagger 2 is.
func collection(out Object, format string) {
	query := out["in"] == "query"
	switch {
	case format == "multi" && query:
	case format == "ssv" && query:
		out["style"], out["explode"] = "spaceDelimited", false
	case format == "pipes" && query:
		out["style"], out["explode"] = "pipeDelimited", false
	case format != "" && format != "csv": // OpenAPI 3.1 has no style for it
		leaveOut(out, "collectionFormat")
	case query:
		out["explode"] = false
	}
}

// bodyOf is the body that a body parameter of Swagger 2 stands for.
func (r *reader) bodyOf(f *file, p Object, consumes []string) Object {
	content, schema := Object{}, r.schema(f, p["schema"])
	for _, kind := range consumes {
		content[kind] = Object{"schema": schema}
	}
	body := Object{"content": content}
	if s := str(p["description"]); s != "" {
		body["description"] = s
	}
	if p["required"] == true {
		body["required"] = true
	}
	return body
}

// formField is a form parameter of Swagger 2: its name, schema and whether it must
// be there.
func (r *reader) formField(f *file, p Object) Object {
	return Object{"name": p["name"], "required": p["required"] == true, "schema": r.schema(f, p)}
}

// formBody is the body that form parameters make.
func formBody(fields []Object, consumes []string) Object {
	properties, required := Object{}, []any{}
	kind := "application/x-www-form-urlencoded"
	if slices.Contains(consumes, "multipart/form-data") {
		kind = "multipart/form-data"
	}
	for _, f := range fields {
		name := str(f["name"])
		properties[name] = f["schema"]
		if f["required"] == true {
			required = append(required, name)
		}
		if child(f, "schema")["format"] == "binary" {
			kind = "multipart/form-data"
		}
	}
	schema := Object{"type": "object", "properties": properties}
	body := Object{"content": Object{kind: Object{"schema": schema}}}
	if len(required) > 0 {
		schema["required"], body["required"] = required, true
	}
	return body
}
