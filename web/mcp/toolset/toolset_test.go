package toolset_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/platform/limits/growth"
	"sluice.dev/sluice/web/mcp/toolset"
)

const document = `
openapi: 3.0.3
paths:
  /v1/things/{id}:
    parameters: [{$ref: '#/components/parameters/ID'}]
    get:
      operationId: getThing
      summary: Read a thing
      security: [{key: []}, {token: []}]
      x-sluice: {route: things.get, scope: things:read, class: events}
      responses: {'200': {$ref: '#/components/responses/Thing'}}
    patch:
      operationId: updateThing
      summary: Change a thing
      security: [{key: []}]
      requestBody: {required: true, content: {application/json: {schema: {type: object, required: [name], properties: {name: {type: string}, size: {type: integer, nullable: true}}}}}}
      responses: {'200': {$ref: '#/components/responses/Thing'}}
    delete:
      operationId: deleteThing
      summary: Delete a thing
      security: [{session: []}]
      responses: {'204': {description: gone}}
  /v1/things:
    get:
      operationId: listThings
      security: [{key: []}]
      parameters:
        - {name: limit, in: query, schema: {type: integer}}
        - {name: tag, in: query, schema: {type: array, items: {type: string}}}
        - {name: state, in: query, explode: false, schema: {type: array, items: {type: string}}}
        - {name: If-Match, in: header, schema: {type: string}}
      responses: {'200': {description: all, content: {application/json: {schema: {type: array, items: {type: object}}}}}}
    post:
      operationId: createThing
      security: [{key: []}]
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Tree'}}}}
      responses: {'202': {description: later}, '201': {$ref: '#/components/responses/Thing'}}
  /v1/wrapped/{name}:
    post:
      operationId: wrapThing
      security: [{key: []}]
      parameters: [{name: name, in: path, required: true, schema: {type: string}}]
      requestBody: {content: {application/json: {schema: {type: object, properties: {name: {type: string}}}}}}
      responses: {'200': {$ref: '#/components/responses/Thing'}}
  /v1/open:
    get: {operationId: open, security: [], responses: {'200': {$ref: '#/components/responses/Thing'}}}
  /v1/optional:
    get: {operationId: optional, security: [{key: []}, {}], responses: {'200': {$ref: '#/components/responses/Thing'}}}
  /v1/upload:
    post: {operationId: upload, security: [{key: []}], requestBody: {content: {application/octet-stream: {}}}, responses: {'200': {$ref: '#/components/responses/Thing'}}}
  /v1/page:
    get: {operationId: page, security: [{key: []}], responses: {'200': {description: a page, content: {text/html: {}}}}}
  /v1/nameless:
    get: {security: [{key: []}], responses: {'200': {$ref: '#/components/responses/Thing'}}}
components:
  parameters:
    ID: {name: id, in: path, required: true, schema: {type: string}, description: the thing}
  responses:
    Thing: {description: a thing, content: {application/json: {schema: {$ref: '#/components/schemas/Tree'}}}}
  schemas:
    Tree:
      type: object
      required: [name]
      example: {name: x}
      properties:
        name: {type: string, nullable: true, enum: [a, b]}
        example: {type: integer, minimum: 0, exclusiveMinimum: true}
        children: {type: array, items: {$ref: '#/components/schemas/Tree'}}
        parent: {nullable: true, allOf: [{$ref: '#/components/schemas/Tree'}]}
`

func tools(t *testing.T) map[string]toolset.Tool {
	t.Helper()
	list, err := toolset.From([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]toolset.Tool{}
	for _, tool := range list {
		by[tool.Name] = tool
	}
	return by
}

// Only what takes and gives JSON, has a name, and asks for a credential is a tool.
func TestWhichOperationsAreTools(t *testing.T) {
	t.Parallel()
	var names []string
	for name := range tools(t) {
		names = append(names, name)
	}
	want := []string{"createThing", "deleteThing", "getThing", "listThings", "updateThing", "wrapThing"}
	if d := cmp.Diff(want, names, cmp.Transformer("set", func(l []string) map[string]bool {
		m := map[string]bool{}
		for _, s := range l {
			m[s] = true
		}
		return m
	})); d != "" {
		t.Error(d)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	by := tools(t)
	want := toolset.Route{Name: "things.get", Scope: "things:read", Class: "events", Auth: []string{"key", "token"}}
	if d := cmp.Diff(want, by["getThing"].Route); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"session"}, by["deleteThing"].Route.Auth); d != "" {
		t.Error(d)
	}
}

// Schemas stand alone, in JSON Schema 2020-12.
func TestSchemas(t *testing.T) {
	t.Parallel()
	by := tools(t)
	const fields = `"fields":{"description":"Show only these of the answer, such as data.id","items":{"type":"string"},"type":"array"},`
	const tree = `"properties":{"children":{"items":{"$ref":"#/$defs/Tree"},"type":"array"},"example":{"exclusiveMinimum":0,"type":"integer"},` +
		`"name":{"enum":["a","b",null],"type":["string","null"]},"parent":{"anyOf":[{"allOf":[{"$ref":"#/$defs/Tree"}]},{"type":"null"}]}},"required":["name"],"type":"object"`
	for name, c := range map[string]struct {
		got  map[string]any
		want string
	}{
		"the output":       {by["getThing"].Output, `{"$defs":{"Tree":{` + tree + `}},` + tree + `}`},
		"of the first 2xx": {by["createThing"].Output, `{"$defs":{"Tree":{` + tree + `}},` + tree + `}`},
		"a list is text":   {by["listThings"].Output, `null`},
		"no body":          {by["deleteThing"].Output, `null`},
		"a parameter":      {by["getThing"].Input, `{"additionalProperties":false,"properties":{` + fields + `"id":{"description":"the thing","type":"string"}},"required":["id"],"type":"object"}`},
		"fields beside it": {by["updateThing"].Input, `{"additionalProperties":false,"properties":{` + fields + `"id":{"description":"the thing","type":"string"},` +
			`"name":{"type":"string"},"size":{"type":["integer","null"]}},"required":["id","name"],"type":"object"}`},
		"a field with the name of a parameter": {by["wrapThing"].Input, `{"additionalProperties":false,"properties":{` +
			`"body":{"properties":{"name":{"type":"string"}},"type":"object"},` + fields +
			`"idempotency_key":{"description":"Makes repeating this call safe: calls with the same key act once.","maxLength":255,"type":"string"},` +
			`"name":{"type":"string"}},"required":["name"],"type":"object"}`},
	} {
		b, err := json.Marshal(c.got)
		if err != nil || string(b) != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, b, c.want)
		}
	}
	if !by["deleteThing"].Empty || by["getThing"].Empty || by["listThings"].Empty {
		t.Error("only deleteThing answers without a body")
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	by := tools(t)
	for _, c := range []struct{ tool, arguments, target, body, header string }{
		{"getThing", `{"id":"a b?#ü"}`, "/v1/things/a%20b%3F%23%C3%BC", "", ""},
		{"getThing", `{"id":7}`, "/v1/things/7", "", ""},
		{"listThings", ``, "/v1/things", "", ""},
		{"listThings", `{"limit":1e2,"tag":["a","b&c"],"state":["x","y"],"If-Match":"\"3\""}`, "/v1/things?limit=1e2&state=x%2Cy&tag=a&tag=b%26c", "", `If-Match: "3"`},
		{"listThings", `{"limit":null}`, "/v1/things", "", ""},
		{"updateThing", `{"id":"x","size":null,"name":"n"}`, "/v1/things/x", `{"name":"n","size":null}`, ""},
		{"updateThing", `{"id":"x"}`, "/v1/things/x", `{}`, ""},
		{"createThing", `{"name":"a","idempotency_key":"k"}`, "/v1/things", `{"name":"a"}`, "Idempotency-Key: k"},
		{"createThing", `{"name":12345678901234567890.10}`, "/v1/things", `{"name":12345678901234567890.10}`, ""},
		{"wrapThing", `{"name":"p","body":{"name":"b"}}`, "/v1/wrapped/p", `{"name":"b"}`, ""},
		{"wrapThing", `{"name":"p"}`, "/v1/wrapped/p", ``, ""},
		{"deleteThing", `{"id":"x"}`, "/v1/things/x", "", ""},
	} {
		r, faults := by[c.tool].Request([]byte(c.arguments))
		if len(faults) > 0 || r.Method != by[c.tool].Method || r.Target != c.target || string(r.Body) != c.body {
			t.Errorf("%s %s: %s %s %s %v", c.tool, c.arguments, r.Method, r.Target, r.Body, faults)
		}
		if name, value, ok := strings.Cut(c.header, ": "); ok && r.Header.Get(name) != value {
			t.Errorf("%s %s: %v", c.tool, c.arguments, r.Header)
		}
		if (r.Header.Get("Content-Type") != "") != (c.body != "") {
			t.Errorf("%s %s: %v", c.tool, c.arguments, r.Header)
		}
	}
}

// Every argument that makes no request is named, and no argument reaches another
// route.
func TestArgumentsThatMakeNoRequest(t *testing.T) {
	t.Parallel()
	by := tools(t)
	for _, c := range []struct{ tool, arguments, fields string }{
		{"getThing", ``, "id"},
		{"getThing", `{"id":""}`, "id"},
		{"getThing", `{"id":".."}`, "id"},
		{"getThing", `{"id":"a/b"}`, "id"},
		{"getThing", `{"id":"%2e%2e"}`, "id"},
		{"getThing", `{"id":["x"]}`, "id"},
		{"getThing", `{"id":"x","url":1,"host":2}`, "host url"},
		{"getThing", `{"z":1}`, "id z"},
		{"getThing", `[]`, "arguments"},
		{"getThing", `{`, "arguments"},
		{"listThings", `{"limit":{"a":1},"If-Match":"a\nb"}`, "limit If-Match"},
	} {
		_, faults := by[c.tool].Request([]byte(c.arguments))
		var fields []string
		for _, f := range faults {
			fields = append(fields, f.Field)
		}
		if strings.Join(fields, " ") != c.fields {
			t.Errorf("%s %s: %v", c.tool, c.arguments, faults)
		}
	}
}

func TestDocumentsThatAreNone(t *testing.T) {
	t.Parallel()
	twice := strings.Replace(document, "operationId: getThing", "operationId: listThings", 1)
	for _, text := range []string{"", "[]", "{}", "\t:", `{"paths":7}`, twice} {
		if list, err := toolset.From([]byte(text)); err == nil {
			t.Errorf("%q: %d tools", text, len(list))
		}
	}
}

// Whatever an agent sends, the request stays on its tool's route.
func FuzzRequest(f *testing.F) {
	list, err := toolset.From([]byte(document))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(`{"id":"x","name":"n"}`)
	f.Add(`{"id":"../v1/keys"}`)
	f.Add(`{"id":"a\u0000","tag":[1,true,null]}`)
	f.Fuzz(func(t *testing.T, arguments string) {
		growth.Linear(t, len(arguments)*len(list), 128, 256<<10, func() {
			for _, tool := range list {
				tool.Request([]byte(arguments))
			}
		})
		for _, tool := range list {
			r, faults := tool.Request([]byte(arguments))
			if len(faults) > 0 {
				continue
			}
			req, err := http.NewRequest(r.Method, "http://gw"+r.Target, nil)
			if err != nil {
				t.Fatalf("%s: %q: %v", tool, r.Target, err)
			}
			steps, want := strings.Split(req.URL.EscapedPath(), "/"), strings.Split(tool.Path, "/")
			if len(steps) != len(want) || steps[2] != want[2] {
				t.Fatalf("%s: %q", tool, r.Target)
			}
		}
	})
}
