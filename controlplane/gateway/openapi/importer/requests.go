package importer

import (
	"regexp"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
)

// request is what the requests of an operation must be.
type request struct {
	in     config.Request
	parts  []*checked // its schemas
	files  bool       // bodies may be files, which may be larger than JSON that edges hold
	reason string     // why they are not checked; empty: they may be
}

// headers are those that others than the product read.
var headers = set(strings.Fields("accept content-type content-length content-encoding authorization host"))

var (
	headerForm = regexp.MustCompile(`^[A-Za-z0-9-]{1,200}$`)
	mediaForm  = regexp.MustCompile(`^(\*/\*|[a-z0-9!#$&^_.+-]+/(\*|[a-z0-9!#$&^_.+-]+))$`)
)

// request reads what op says of its requests.
func (im *importer) request(op document.Operation, path, where string) *request {
	q := &request{}
	variables := variables(op.Path, path)
	list, _ := op.Node["parameters"].([]any)
	for _, v := range list {
		if p, ok := v.(document.Object); ok {
			im.parameter(q, p, variables, where)
		}
	}
	if body, ok := op.Node["requestBody"].(document.Object); ok {
		im.body(q, body, where)
	}
	return q
}

// variables are those of a route's path by the names that they have in the document's,
// of which path is the one that was made of it.
func variables(template, path string) map[string]string {
	out, steps := map[string]string{}, strings.Split(path, "/")
	for i, step := range strings.Split(template, "/") {
		if found := braces.FindString(step); found != "" && found == step {
			out[step[1:len(step)-1]] = strings.Trim(steps[i], "{}")
		}
	}
	return out
}

// schema writes a schema of q.
func (im *importer) schema(q *request, v any) config.JSONSchema {
	c := im.schemas.check(v)
	q.parts = append(q.parts, c)
	return c.schema
}

// parameter adds a parameter to q, or names why it is not checked.
func (im *importer) parameter(q *request, p document.Object, variables map[string]string, where string) {
	name, _ := p["name"].(string)
	in, _ := p["in"].(string)
	style, _ := p["style"].(string)
	out := config.Parameter{Name: name, In: in}
	out.Required, _ = p["required"].(bool)
	schema := p["schema"]
	_, left := p[document.LeftOut]
	switch {
	case in == "cookie":
		im.note(where, "cookie parameters: not validated")
		return
	case in == "header" && has(headers, strings.ToLower(name)):
		return
	case in == "header" && !headerForm.MatchString(name) || in == "path" && variables[name] == "" || len(name) > 200:
		im.note(where, "parameters in a header or a part of a path that edges do not check: not validated")
		return
	case schema == nil || left || !im.plainStyle(in, style) || im.holds(schema, 0):
		im.note(where, "parameters that are objects, JSON or of an uncommon style: not validated")
		return
	}
	if in == "path" {
		out.Name = variables[name]
		if o, ok := schema.(document.Object); ok && (len(o) == 0 || len(o) == 1 && o["type"] == "string") {
			return // whatever stands there is one
		}
	}
	if in == "query" {
		if style != "form" {
			out.Style = style
		}
		if explode, ok := p["explode"].(bool); ok {
			out.Explode = &explode
		}
		if p["allowEmptyValue"] == true {
			schema = document.Object{"anyOf": []any{schema, document.Object{"const": ""}}}
		}
	}
	out.Schema = im.schema(q, schema)
	q.in.Parameters = append(q.in.Parameters, out)
}

// plainStyle reports whether edges read a style.
func (im *importer) plainStyle(in, style string) bool {
	known := []string{"", "simple"}
	if in == "query" {
		known = []string{"", "form", "spaceDelimited", "pipeDelimited"}
	}
	return slices.Contains(known, style)
}

// maxLook bounds how far the types of a parameter are looked for.
const maxLook = 6

// holds reports whether a parameter may be an object, or an array of what is no
// plain value: edges do not read those.
func (im *importer) holds(v any, depth int) bool {
	o, _ := v.(document.Object)
	if o == nil || depth > maxLook {
		return false
	}
	if ref, ok := o["$ref"].(string); ok {
		_, to, _ := im.schemas.of.Schema(ref)
		return im.holds(to, depth+1)
	}
	if is(o, "object") || o["type"] == nil && o["properties"] != nil {
		return true
	}
	if items, ok := o["items"].(document.Object); ok && (is(items, "array") || im.holds(items, depth+1)) {
		return true
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := o[key].([]any)
		for _, x := range list[:min(len(list), maxBases)] {
			if im.holds(x, depth+1) {
				return true
			}
		}
	}
	return false
}

// is reports whether a schema says that its values may be of a type.
func is(o document.Object, kind string) bool {
	list, _ := o["type"].([]any)
	return o["type"] == kind || slices.Contains(list, any(kind))
}

// body adds a body to q. Where none of its media types is JSON, it is not looked at:
// bodies that edges look at may be no longer than what they hold.
func (im *importer) body(q *request, body document.Object, where string) {
	content, _ := body["content"].(document.Object)
	out := &config.RequestBody{Content: map[string]config.MediaType{}}
	out.Required, _ = body["required"].(bool)
	var ranges any
	checks, covered := false, false
	for _, kind := range sortedKeys(content) {
		media, _ := content[kind].(document.Object)
		schema, described := media["schema"]
		if !mediaForm.MatchString(kind) {
			im.note(where, "bodies of what is not a media type: not validated")
			return
		}
		json := isJSON(kind)
		covered = covered || kind == "application/json"
		switch {
		case json && described:
			out.Content[kind] = config.MediaType{Schema: im.schema(q, schema)}
		case (kind == "*/*" || kind == "application/*") && described:
			ranges = schema
			fallthrough
		default:
			out.Content[kind] = config.MediaType{}
		}
		checks = checks || json
		q.files = q.files || holdsFiles(kind)
	}
	if ranges != nil && !covered { // what a range says is of JSON too
		out.Content["application/json"], checks = config.MediaType{Schema: im.schema(q, ranges)}, true
	}
	if !checks {
		im.note(where, "bodies that are not JSON: not validated")
		return
	}
	q.in.Body = out
}

func isJSON(kind string) bool { return kind == "application/json" || strings.HasSuffix(kind, "+json") }

// holdsFiles reports whether bodies of a media type may be files.
func holdsFiles(kind string) bool {
	switch family, _, _ := strings.Cut(kind, "/"); {
	case isJSON(kind), family == "text", strings.HasSuffix(kind, "xml"), kind == "application/x-www-form-urlencoded":
		return false
	}
	return true
}
