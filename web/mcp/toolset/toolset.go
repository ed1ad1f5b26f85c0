package toolset

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// place is where an argument goes in a request.
type place string

// The places. An argument in whole is the body itself; one in answer chooses what is
// shown.
const (
	inPath   place = "path"
	inQuery  place = "query"
	inHeader place = "header"
	inBody   place = "body"
	inWhole  place = "whole"
	inAnswer place = "answer" // it is no part of the request
)

// Argument is one that a tool takes.
type Argument struct {
	Name   string // as agents write it
	place  place
	target string // as the request names it
	joined bool   // a list in one query parameter, joined by commas
}

// Tool is an operation as agents see it.
type Tool struct {
	Name, Title, Description string
	Method                   string
	Path                     string // with {variables}
	Arguments                []Argument
	Input                    map[string]any // JSON Schema 2020-12 of the arguments; its root is an object
	// Output is the JSON Schema of what the operation answers; its root is an object.
	// nil: the result is text alone.
	Output map[string]any
	// Empty says that the operation answers without a body.
	Empty bool
	Route Route
}

// Route is what the document says of an operation's route, under x-sluice and
// security.
type Route struct {
	Name, Scope, Class string
	Auth               []string // who gets in: key, token, session
}

// idempotency is how agents may repeat a POST safely.
const (
	idempotencyArgument = "idempotency_key"
	idempotencyHeader   = "Idempotency-Key"
)

// nameForm is what every protocol version takes for the name of a tool.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// maxSchemas bounds the schemas of a tool's arguments, and those of its result: what
// is referred to beyond them is named, not written. An agent reads all of it.
const maxSchemas = 1000

// From returns the tools of an OpenAPI document, in JSON or YAML, by path and
// method. Only operations that take and give JSON, or nothing, that have an
// operationId, and that ask for a credential become tools. It fails when text is
// no such document, is longer than MaxDocument, or two tools would have one name.
//
// It takes time and memory linear in text and in the tools: a schema that all
// operations share is written once for each of them, as agents are given it, and a
// tool has maxSchemas of them, and those that stand in the last of these without a
// reference.
func From(text []byte) ([]Tool, error) {
	doc, err := parse(text)
	if err != nil {
		return nil, err
	}
	var tools []Tool
	taken := map[string]bool{}
	for _, op := range doc.operations() {
		t, ok := doc.tool(op)
		if !ok {
			continue
		}
		if taken[t.Name] {
			return nil, fmt.Errorf("two operations are called %s", t.Name)
		}
		taken[t.Name] = true
		tools = append(tools, t)
	}
	return tools, nil
}

// tool makes a tool of an operation; ok is false when it cannot be one.
func (d document) tool(op operation) (t Tool, ok bool) {
	t = Tool{Name: text(op.node, "operationId"), Title: text(op.node, "summary"), Method: op.method, Path: op.path, Route: d.route(op)}
	t.Description = strings.TrimSpace(t.Title + ".\n" + text(op.node, "description"))
	body := d.resolve(op.node["requestBody"])
	input, jsonIn := d.json(body)
	response, answers := d.success(op)
	output, jsonOut := d.json(response)
	if !nameForm.MatchString(t.Name) || !jsonIn || !answers || !jsonOut || len(t.Route.Auth) == 0 {
		return t, false
	}
	t.Empty = output == nil
	t.arguments(d, op, input, body["required"] == true)
	if output != nil {
		room := maxSchemas
		out := &schemas{doc: d, used: object{}, left: &room}
		if o := out.root(output); o["type"] == "object" && !out.open {
			t.Output = o
		}
	}
	return t, true
}

// route reads what the document says of the operation's route. An operation that
// is open to anybody has no Auth.
func (d document) route(op operation) Route {
	x := child(op.node, "x-sluice")
	r := Route{Name: text(x, "route"), Scope: text(x, "scope"), Class: text(x, "class")}
	security, ok := op.node["security"].([]any)
	if !ok {
		security, _ = d.root["security"].([]any)
	}
	for _, s := range security {
		ways, _ := s.(object)
		if len(ways) == 0 {
			r.Auth = nil
			break
		}
		r.Auth = append(r.Auth, sorted(ways)...)
	}
	return r
}

// arguments sets what t takes: the parameters, and the fields of the body.
func (t *Tool) arguments(d document, op operation, body object, required bool) {
	room := maxSchemas
	in := &schemas{doc: d, used: object{}, left: &room}
	properties, needed := object{}, []any{}
	add := func(a Argument, schema any, required bool) {
		t.Arguments = append(t.Arguments, a)
		properties[a.Name] = schema
		if required {
			needed = append(needed, a.Name)
		}
	}
	for _, p := range op.params {
		if text(p, "name") == idempotencyHeader {
			continue // it has a name of its own below
		}
		a := Argument{text(p, "name"), place(text(p, "in")), text(p, "name"), p["explode"] == false}
		if a.place == inPath || a.place == inQuery || a.place == inHeader {
			add(a, described(in.rewrite(p["schema"]), text(p, "description")), a.place == inPath || p["required"] == true)
		}
	}
	if op.method == "POST" {
		add(Argument{idempotencyArgument, inHeader, idempotencyHeader, false}, object{"type": "string", "maxLength": 255,
			"description": "Makes repeating this call safe: calls with the same key act once."}, false)
	}
	if body != nil {
		t.body(in, body, required, properties, add)
	}
	if _, own := properties[fieldsArgument]; !own && !t.Empty {
		add(Argument{fieldsArgument, inAnswer, "", false}, fieldsSchema(), false)
	}
	t.Input = in.whole(object{"type": "object", "properties": properties, "required": needed, "additionalProperties": false})
}

// body adds the fields of a body, or the body as one argument when it is not an
// object of plain fields or a field has the name of a parameter.
func (t *Tool) body(in *schemas, body object, required bool, taken object, add func(Argument, any, bool)) {
	schema, _ := in.rewrite(in.doc.resolve(body)).(object)
	fields := child(schema, "properties")
	flat := plainObject(schema)
	for name := range fields {
		_, twice := taken[name]
		flat = flat && !twice
	}
	if !flat {
		add(Argument{"body", inWhole, "", false}, schema, required)
		return
	}
	needed, _ := schema["required"].([]any)
	for _, name := range sorted(fields) {
		add(Argument{name, inBody, name, false}, fields[name], slices.Contains(needed, any(name)))
	}
}

// described returns a schema with a description, unless it has one.
func described(schema any, words string) any {
	o, ok := schema.(object)
	if !ok {
		o = object{}
	}
	if _, has := o["description"]; words != "" && !has {
		o["description"] = words
	}
	return o
}
