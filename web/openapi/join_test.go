package openapi

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/http/httpapi"
)

const clips = `
openapi: 3.0.3
paths:
  /v1/clips/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get: {operationId: getClip, responses: {'200': {description: d, content: {application/json: {schema: {$ref: '#/components/schemas/Page'}}}}}}
    delete: {operationId: deleteClip, responses: {'204': {description: d}}}
components:
  schemas:
    Page: {type: object, properties: {next: {type: string, nullable: true}, kind: {type: string, nullable: true, enum: [a]}, clip: {nullable: true, allOf: [{$ref: '#/components/schemas/Clip'}]}}}
    Clip: {type: object}
    Unused: {type: object}
    Error: {type: object}
`

const keys = `
openapi: 3.1.0
paths:
  /v1/keys:
    get: {operationId: listKeys, responses: {'200': {description: d, content: {application/json: {schema: {$ref: '#/components/schemas/Page'}}}}}}
components:
  schemas:
    Page: {type: array}
    Error: {type: object, required: [error]}
`

func join(t *testing.T) *Document {
	t.Helper()
	d, err := Join(Fragment{"keys", "api", []byte(keys)}, Fragment{"clips", "media", []byte(clips)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func document() config.Document {
	return config.Document{Routes: []config.Route{
		{Name: "keys", Path: "/v1/keys", Product: "api", Auth: []string{"session", "none"}},
		{Name: "clips.read", Methods: []string{"GET"}, Path: "/v1/clips/*", Product: "media", Auth: []string{"key"}, Scope: "clips:read", Class: "bulk", Price: "0.01"},
		{Name: "elsewhere", Listener: config.Runtime, Methods: []string{"DELETE"}, Path: "/v1/clips/{id}", Product: "media", Auth: []string{"key"}},
	}}
}

// at returns what stands at a path of keys.
func at(v any, path ...string) any {
	for _, k := range path {
		o, _ := v.(map[string]any)
		v = o[k]
	}
	return v
}

func TestJoinedComponentsKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	d := join(t).Public(document(), Info{Title: "t", Version: "v", URL: "http://gw"})
	schemas := at(d, "components", "schemas")
	for name, want := range map[string]any{
		"Page":  map[string]any{"type": "array"},
		"Error": map[string]any{"type": "object", "required": []any{"error"}},
		"ClipsPage": map[string]any{"type": "object", "properties": map[string]any{
			"next": map[string]any{"type": []any{"string", "null"}},
			"kind": map[string]any{"type": []any{"string", "null"}, "enum": []any{"a", nil}},
			"clip": map[string]any{"anyOf": []any{map[string]any{"allOf": []any{map[string]any{"$ref": "#/components/schemas/Clip"}}}, map[string]any{"type": "null"}}},
		}},
		"Clip":   map[string]any{"type": "object"},
		"Unused": nil,
	} {
		if diff := cmp.Diff(want, at(schemas, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	ref := at(d, "paths", "/v1/clips/{id}", "get", "responses", "200", "content", "application/json", "schema", "$ref")
	if ref != "#/components/schemas/ClipsPage" || at(d, "openapi") != "3.1.0" {
		t.Error(ref, at(d, "openapi"))
	}
}

func TestOperationsSayWhatTheirRouteAsks(t *testing.T) {
	t.Parallel()
	d := join(t).Public(document(), Info{})
	get := at(d, "paths", "/v1/clips/{id}", "get")
	want := map[string]any{"route": "clips.read", "product": "media", "scope": "clips:read", "class": "bulk", "price": "0.01"}
	if diff := cmp.Diff(want, at(get, "x-sluice")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{map[string]any{"key": []any{}}, map[string]any{"payment": []any{}}}, at(get, "security")); diff != "" {
		t.Error(diff)
	}
	if at(get, "responses", "402") == nil || at(get, "responses", "403") == nil || at(get, "responses", "401") == nil || at(get, "responses", "200") == nil {
		t.Error(at(get, "responses"))
	}
	list := at(d, "paths", "/v1/keys", "get")
	if diff := cmp.Diff([]any{map[string]any{"session": []any{}}, map[string]any{}}, at(list, "security")); diff != "" {
		t.Error(diff)
	}
	if at(list, "responses", "401") != nil || at(list, "responses", "402") != nil || at(list, "responses", "429") == nil {
		t.Error(at(list, "responses"))
	}
}

// What no route of the gateway leads to is not described: another method,
// another listener, another product.
func TestOperationsWithoutARouteAreLeftOut(t *testing.T) {
	t.Parallel()
	d := join(t).Public(document(), Info{})
	if op := at(d, "paths", "/v1/clips/{id}", "delete"); op != nil {
		t.Error(op)
	}
	other := document()
	other.Routes[1].Product = "api"
	if item := at(join(t).Public(other, Info{}), "paths", "/v1/clips/{id}"); item != nil {
		t.Error(item)
	}
}

func TestWholeDocumentHasWhatNoRouteLeadsTo(t *testing.T) {
	t.Parallel()
	d := join(t)
	d.Define(map[string]any{"Extra": map[string]any{"type": "object"}})
	w := d.Whole(Info{Title: "t"})
	if at(w, "paths", "/v1/clips/{id}", "delete") == nil || at(w, "components", "schemas", "Extra") == nil || at(w, "components", "schemas", "Unused") == nil {
		t.Error(w)
	}
}

func TestWhatCannotBeJoined(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]Fragment{
		"not YAML":        {{"a", "api", []byte("a: [")}},
		"not an object":   {{"a", "api", []byte("[]")}},
		"described twice": {{"a", "api", []byte(keys)}, {"b", "api", []byte(keys)}},
	} {
		if _, err := Join(list...); err == nil {
			t.Errorf("%s: joined", name)
		}
	}
}

func TestDocumentIsServedAndMadeOnceForAVersion(t *testing.T) {
	t.Parallel()
	now := config.Version{Number: 1, Document: document()}
	s := &Service{Joined: join(t), Latest: func(context.Context) (config.Version, error) { return now, nil }}
	r := chi.NewRouter()
	s.Routes(r, httpapi.Adapter{})
	get := func(tag string) *httptest.ResponseRecorder {
		w, q := httptest.NewRecorder(), httptest.NewRequest("GET", "/openapi.json", nil)
		q.Header.Set("If-None-Match", tag)
		r.ServeHTTP(w, q)
		return w
	}
	w := get("")
	var d map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || w.Code != 200 || len(at(d, "paths").(map[string]any)) != 2 {
		t.Fatal(w.Code, err, d)
	}
	if again := get(`"other", W/` + w.Header().Get("ETag")); again.Code != 304 || again.Body.Len() != 0 {
		t.Error(again.Code)
	}
	now = config.Version{Number: 2}
	if next := get(w.Header().Get("ETag")); next.Code != 200 || next.Header().Get("ETag") == w.Header().Get("ETag") {
		t.Error(next.Code)
	}
}
