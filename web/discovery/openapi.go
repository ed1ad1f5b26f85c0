package discovery

import (
	_ "embed"
	"encoding/json"
)

// OpenAPI describes what is open to everyone, as YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte

// PlaceholderOpenAPI describes the surfaces that have no engine, as the
// placeholder serves them. It names one method of each: the others answer alike.
func PlaceholderOpenAPI() []byte {
	paths := map[string]any{}
	for _, s := range known() {
		for _, path := range s.placeholderPaths() {
			paths[path] = map[string]any{"post": absent("call"+upper(s.Name), s.Title+" needs "+s.Needs)}
			paths[path+"/{rest}"] = map[string]any{
				"parameters": []any{map[string]any{"name": "rest", "in": "path", "required": true, "schema": map[string]any{"type": "string"}}},
				"post":       absent("call"+upper(s.Name)+"Below", s.Title+" needs "+s.Needs),
			}
		}
	}
	text, err := json.Marshal(map[string]any{"openapi": "3.1.0", "paths": paths})
	if err != nil {
		panic(err) // maps of strings are JSON
	}
	return text
}

// absent is an operation that only answers 501.
func absent(id, summary string) map[string]any {
	refused := func(why string) map[string]any {
		return map[string]any{"description": why, "content": map[string]any{"application/json": map[string]any{"schema": map[string]any{"$ref": "#/components/schemas/Error"}}}}
	}
	return map[string]any{"operationId": id, "summary": summary, "x-internal": true, "responses": map[string]any{
		"400": refused("Not a request that an edge passes on"), "501": refused("There is no engine for it here"),
	}}
}

// upper is a name with a capital first letter.
func upper(name string) string { return string(name[0]-'a'+'A') + name[1:] }
