package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// document is the description of the API.
type document struct {
	components object
	operations []operation
}

// operation is a method of a client.
type operation struct {
	ID, Method, Path string
	About            string // one sentence
	Deprecated       bool
	PathParams       []param
	Query            []param
	Body             object   // schema of the JSON body; nil: none
	Binary           []string // content types of a body of bytes
	BodyOptional     bool
	Result           object // schema of the JSON answer; nil: none
	Raw              bool   // the answer is given as HTTP has it: it comes in several forms, or is no JSON
	Once             bool   // takes an Idempotency-Key
	Chat             bool   // served by the chat runtime
	Item             object // schema of an entry, where the answer is a page of a list with a cursor
	Next             string // name of the next cursor in its pagination
}

// param is a parameter of the path or the query.
type param struct {
	Name, Type, About string // Type is that of JSON Schema
	Required          bool
}

// parse reads a document of our own making.
func parse(text []byte) (*document, error) {
	var doc struct {
		Paths      map[string]object
		Components object
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	d := &document{components: doc.Components}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		item := doc.Paths[path]
		for _, verb := range []string{"get", "post", "put", "patch", "delete"} {
			op, ok := item[verb].(object)
			if !ok {
				continue
			}
			o, err := d.operation(verb, path, item, op)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", verb, path, err)
			}
			if o != nil {
				d.operations = append(d.operations, *o)
			}
		}
	}
	slices.SortFunc(d.operations, func(a, b operation) int { return strings.Compare(a.ID, b.ID) })
	return d, nil
}

// operation reads one; nil: clients have it by hand, as it is a stream of events.
func (d *document) operation(verb, path string, item, op object) (*operation, error) {
	o := &operation{Method: strings.ToUpper(verb), Path: path, Chat: slices.Contains(list(op["tags"]), any("chat"))}
	o.ID, _ = op["operationId"].(string)
	o.Deprecated, _ = op["deprecated"].(bool)
	if o.ID == "" {
		return nil, fmt.Errorf("no operationId")
	}
	o.About = sentence(op)
	d.takeParams(o, slices.Concat(list(item["parameters"]), list(op["parameters"])))
	d.takeBody(o, op)
	if d.takeResult(o, op) {
		return nil, nil
	}
	d.takePage(o)
	return o, nil
}

// sentence says what an operation is for.
func sentence(op object) string {
	text, _ := op["summary"].(string)
	if text == "" {
		text, _ = op["description"].(string)
	}
	text = line(text)
	if before, _, ok := strings.Cut(text, ". "); ok {
		text = before
	}
	return strings.TrimSuffix(text, ".")
}

// line is a text on one line, which ends no comment.
func line(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "*/", "* /")
}

func (d *document) takeParams(o *operation, params []any) {
	for _, v := range params {
		p := d.resolved(v)
		name, _ := p["name"].(string)
		schema := d.resolved(p["schema"])
		kind, _ := schema["type"].(string)
		about, _ := p["description"].(string)
		required, _ := p["required"].(bool)
		one := param{Name: name, Type: kind, About: line(about), Required: required}
		switch p["in"] {
		case "path":
			o.PathParams = append(o.PathParams, one)
		case "query":
			o.Query = append(o.Query, one)
		case "header":
			o.Once = o.Once || name == "Idempotency-Key"
		}
	}
	at := func(p param) int { return strings.Index(o.Path, "{"+p.Name+"}") }
	slices.SortFunc(o.PathParams, func(a, b param) int { return at(a) - at(b) })
}

func (d *document) takeBody(o *operation, op object) {
	body := d.resolved(op["requestBody"])
	if body == nil {
		return
	}
	required, _ := body["required"].(bool)
	o.BodyOptional = !required
	content, _ := body["content"].(object)
	if media, ok := content["application/json"].(object); ok && len(content) == 1 {
		o.Body, _ = media["schema"].(object)
		return
	}
	o.Binary = slices.Sorted(maps.Keys(content))
}

// takeResult reads what success looks like, and reports whether that is a stream of events.
func (d *document) takeResult(o *operation, op object) (stream bool) {
	responses, _ := op["responses"].(object)
	var others bool
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		content, _ := d.resolved(responses[status])["content"].(object)
		for _, kind := range slices.Sorted(maps.Keys(content)) {
			media, _ := content[kind].(object)
			schema, _ := media["schema"].(object)
			switch {
			case kind == "text/event-stream":
				return true
			case kind != "application/json":
				others = true
			case o.Result == nil:
				o.Result = schema
			case text(o.Result) != text(schema):
				others = true
			}
		}
	}
	// A list that is also offered in another form is read as a list.
	if others && (o.Result == nil || !strings.HasPrefix(o.ID, "list")) {
		o.Raw, o.Result = true, nil
	} else if others {
		o.Query = slices.DeleteFunc(o.Query, func(p param) bool { return p.Name == "format" })
	}
	return false
}

// takePage finds out whether the answer is a page that a cursor leads on from.
func (d *document) takePage(o *operation) {
	if o.Method != "GET" || !slices.ContainsFunc(o.Query, func(p param) bool { return p.Name == "cursor" }) {
		return
	}
	page := d.resolved(o.Result)
	properties, _ := page["properties"].(object)
	pagination, _ := d.resolved(properties["pagination"])["properties"].(object)
	data := d.resolved(properties["data"])
	items, _ := data["items"].(object)
	for _, name := range []string{"next_cursor", "nextCursor"} {
		if pagination[name] != nil && items != nil {
			o.Item, o.Next = items, name
		}
	}
}

// resolved follows references.
func (d *document) resolved(v any) object {
	o, _ := v.(object)
	for range 10 {
		ref, ok := o["$ref"].(string)
		if !ok {
			return o
		}
		parts := strings.Split(strings.TrimPrefix(ref, "#/components/"), "/")
		of, _ := d.components[parts[0]].(object)
		o, _ = of[parts[1]].(object)
	}
	return nil
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
