package document

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// verbs are the keys of a path item that stand for operations.
var verbs = []string{"delete", "get", "head", "options", "patch", "post", "put", "trace"}

// operations reads every operation of the document, by path and method.
func (r *reader) operations(d *Document, f *file) {
	root, _ := f.root.(Object)
	d.Base = r.base(f, root, "")
	security, has := root["security"].([]any)
	d.Secured = has
	schemes := r.schemes(f, root)
	paths := child(root, "paths")
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if strings.HasPrefix(path, "x-") {
			continue
		}
		at, item := r.resolve(f, paths[path])
		for _, verb := range verbs {
			node, ok := item[verb].(Object)
			if !ok || r.err != nil {
				continue
			}
			op := Operation{Method: strings.ToUpper(verb), ID: str(node["operationId"]), Summary: str(node["summary"]), Tags: unique(texts(node["tags"]))}
			where := op.Method + " " + path
			op.Path = r.baseOf(at, node, item, where, d.Base) + "/" + strings.TrimPrefix(path, "/")
			own, said := node["security"].([]any)
			d.Secured = d.Secured || said
			if !said {
				own = security
			}
			op.Security = r.security(own, schemes, where)
			op.Extensions = Object{}
			for _, from := range []Object{d.Extensions, extensions(item), extensions(node)} {
				maps.Copy(op.Extensions, from)
			}
			op.Node = r.operation(at, &op, item, node, root)
			r.beyond(node, where)
			d.Operations = append(d.Operations, op)
		}
	}
}

// beyond names what an operation has that no request to the gateway is part of.
func (r *reader) beyond(node Object, where string) {
	if len(child(node, "callbacks")) > 0 {
		r.note(where, "callbacks, which are requests that the product makes: left out")
	}
}

// outside names what the document has besides operations.
func (r *reader) outside(root Object) {
	if hooks := child(root, "webhooks"); len(hooks) > 0 {
		for _, name := range slices.Sorted(maps.Keys(hooks)) {
			r.note(name, "webhooks, which are requests that the product makes: left out")
		}
	}
	if list, ok := root["servers"].([]any); ok && len(list) > 1 {
		r.note("", "further servers: the path of the first stands for all")
	}
}

// baseOf is the path that stands before an operation's: of its own servers, those of
// its path, or the document's.
func (r *reader) baseOf(f *file, node, item Object, where, base string) string {
	for _, o := range []Object{node, item} {
		if list, ok := o["servers"].([]any); ok && len(list) > 0 {
			r.note(where, "servers of its own: their path counts, not their host")
			return r.base(f, o, where)
		}
	}
	return base
}

var variable = regexp.MustCompile(`\{[^{}]*\}`)

// base is the path of the first server of o, without a last slash.
func (r *reader) base(f *file, o Object, where string) string {
	if f.two {
		return trimmed(str(o["basePath"]))
	}
	list, _ := o["servers"].([]any)
	if len(list) == 0 {
		return ""
	}
	server, _ := list[0].(Object)
	vars := child(server, "variables")
	address := variable.ReplaceAllStringFunc(str(server["url"]), func(v string) string {
		return scalarText(child(vars, v[1:len(v)-1])["default"])
	})
	if i := strings.Index(address, "://"); i >= 0 { // hosts may be anything: only the path is looked at
		_, path, found := strings.Cut(address[i+3:], "/")
		if !found {
			return ""
		}
		address = "/" + path
	}
	u, err := url.Parse(address)
	if err != nil {
		r.note(cmp.Or(where, str(server["url"])), "addresses of servers that are none: taken as /")
		return ""
	}
	return trimmed(u.Path)
}

func trimmed(path string) string {
	path = strings.Trim(path, "/")
	if path == "" || path == "." {
		return ""
	}
	return "/" + path
}

// schemes are the security schemes by name.
func (r *reader) schemes(f *file, root Object) map[string]Need {
	of := child(child(root, "components"), "securitySchemes")
	if f.two {
		of = child(root, "securityDefinitions")
	}
	out := map[string]Need{}
	for name, v := range of {
		_, o := r.resolve(f, v)
		n := Need{Scheme: name, Type: str(o["type"]), Basic: strings.EqualFold(str(o["scheme"]), "basic")}
		if n.Type == "basic" { // of Swagger 2
			n.Type, n.Basic = "http", true
		}
		out[name] = n
	}
	return out
}

func (r *reader) security(list []any, schemes map[string]Need, where string) (out []Alternative) {
	for _, x := range list {
		o, _ := x.(Object)
		a := Alternative{}
		for _, name := range slices.Sorted(maps.Keys(o)) {
			n, ok := schemes[name]
			if !ok {
				n = Need{Scheme: name}
				r.note(where, "security schemes that are not defined: taken as a key")
			}
			n.Scopes = unique(texts(o[name]))
			a = append(a, n)
		}
		out = append(out, a)
	}
	return out
}

// operation returns the operation object in the one form.
func (r *reader) operation(f *file, op *Operation, item, node, root Object) Object {
	out := Object{"responses": r.responses(f, op, node, root)}
	for _, key := range []string{"operationId", "summary", "description"} {
		if s := str(node[key]); s != "" {
			out[key] = s
		}
	}
	if len(op.Tags) > 0 {
		out["tags"] = anys(op.Tags)
	}
	if node["deprecated"] == true {
		out["deprecated"] = true
	}
	params, body := r.parameters(f, op, item, node, root)
	if len(params) > 0 {
		out["parameters"] = params
	}
	if raw, ok := node["requestBody"]; ok && !f.two {
		at, b := r.resolve(f, raw)
		body = Object{"content": r.content(at, child(b, "content"))}
		if b["required"] == true {
			body["required"] = true
		}
		if s := str(b["description"]); s != "" {
			body["description"] = s
		}
	}
	if content := child(body, "content"); len(content) > 0 {
		out["requestBody"] = body
		op.MaxBody = maxBody(content)
	}
	return out
}

// maxBody is the longest binary body, if every content says how long it may be.
func maxBody(content Object) (most uint64) {
	for _, c := range content {
		media, _ := c.(Object)
		schema := child(media, "schema")
		n, ok := number(schema["maxLength"])
		size, err := strconv.ParseUint(n.String(), 10, 40)
		if !ok || err != nil || schema["format"] != "binary" {
			return 0
		}
		most = max(most, size)
	}
	return most
}

// content returns media types with their schemas.
func (r *reader) content(f *file, of Object) Object {
	out := Object{}
	for name, c := range of {
		_, media := r.resolve(f, c)
		entry := Object{}
		if s, ok := media["schema"]; ok {
			entry["schema"] = r.schema(f, s)
		}
		kind, _, _ := strings.Cut(name, ";")
		kind = strings.ToLower(strings.TrimSpace(kind))
		if _, taken := out[kind]; !taken && r.spend(1) {
			out[kind] = entry
		}
	}
	return out
}

// responses returns the answers of an operation. Links are left out.
func (r *reader) responses(f *file, op *Operation, node, root Object) Object {
	out := Object{}
	for status, v := range child(node, "responses") {
		if strings.HasPrefix(status, "x-") {
			continue
		}
		at, o := r.resolve(f, v)
		res := Object{"description": str(o["description"])}
		content := Object{}
		if f.two {
			if s, ok := o["schema"]; ok {
				schema := r.schema(at, s)
				for _, kind := range kinds(node["produces"], root["produces"]) {
					content[kind] = Object{"schema": schema}
				}
			}
		} else {
			content = r.content(at, child(o, "content"))
		}
		if _, ok := content["text/event-stream"]; ok {
			op.Streams = true
		}
		if len(content) > 0 {
			res["content"] = content
		}
		if r.spend(1) {
			out[status] = res
		}
	}
	return out
}
