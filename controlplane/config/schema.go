package config

import (
	_ "embed" // for Schema
	"net/http"
)

// Schema is the JSON Schema (2020-12) of a document, for editors. It is made of
// this package's types and their comments by the test that holds it to them.
//
//go:embed schema.json
var Schema []byte

// schema answers GET config/schema.
func schema(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/schema+json")
	w.Header().Set("Cache-Control", "public, max-age=60")
	_, err := w.Write(Schema)
	return err
}
