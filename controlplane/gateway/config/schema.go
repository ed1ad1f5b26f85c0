package config

import (
	_ "embed" // for Schema
	"encoding/json"
	"maps"
	"net/http"
	"slices"
)

// Schema is the JSON Schema (2020-12) of a document, for editors. It is made of
// this package's types and their comments by the test that holds it to them.
//
//go:embed schema.json
var Schema []byte

// Schemas returns the parts of Schema by name, for documents that refer to them:
// Document, Class, Plan, Product and Route. Objects need not say their name
// where a path does.
func Schemas() (map[string]any, error) {
	var whole map[string]any
	if err := json.Unmarshal(Schema, &whole); err != nil {
		return nil, err
	}
	delete(whole, "$schema")
	out := map[string]any{"Document": whole}
	fields, _ := whole["properties"].(map[string]any)
	for name, of := range map[string]string{"Class": "classes", "Plan": "plans", "Product": "products", "Route": "routes"} {
		list, _ := fields[of].(map[string]any)
		element, _ := list["items"].(map[string]any)
		object := maps.Clone(element)
		required, _ := object["required"].([]any)
		object["required"] = slices.DeleteFunc(slices.Clone(required), func(f any) bool { return f == "name" })
		out[name] = object
	}
	return out, nil
}

// showSchema answers GET config/schema.
func showSchema(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/schema+json")
	w.Header().Set("Cache-Control", "public, max-age=60")
	_, err := w.Write(Schema)
	return err
}
