// Command generate makes what of the SDKs follows from the OpenAPI documents: a method
// for each operation in each language, by templates of its own, and the types of Go, by
// oapi-codegen. With -document it writes the document instead, from which the generators
// of TypeScript and Python make theirs (make sdks).
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"sluice.dev/sluice/internal/app"
)

//go:generate go run .

func main() {
	document := flag.String("document", "", "write the document that generators of types read to this `FILE`, and nothing else")
	flag.Parse()
	if err := run(*document); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(document string) error {
	doc, err := read()
	if err != nil {
		return err
	}
	if document != "" {
		b, err := json.Marshal(doc.schemas())
		if err != nil {
			return err
		}
		return os.WriteFile(document, b, 0o644)
	}
	files, err := doc.files()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return err
		}
	}
	return doc.goTypes(filepath.Join(folder, "go", "types.go"))
}

// folder holds the SDKs, from here.
const folder = ".."

// read is the document of this checkout.
func read() (*document, error) {
	text, err := app.SDKDocument()
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// files are the methods in each language, by their place in the folder of SDKs.
func (d *document) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	var errs []error
	for name, write := range map[string]func(*document) ([]byte, error){
		"go/operations.go":             goOperations,
		"typescript/src/operations.ts": tsOperations,
		"python/sluice/_operations.py": pythonOperations,
	} {
		text, err := write(d)
		files[name] = text
		errs = append(errs, err)
	}
	return files, errors.Join(errs...)
}

// tools is the module in which oapi-codegen is pinned.
const tools = "../../e2e/clients/generators"

// goTypes has oapi-codegen write the types of Go.
func (d *document) goTypes(to string) error {
	dir, err := os.MkdirTemp("", "sdk")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	text, err := json.Marshal(d.schemasForGo())
	if err != nil {
		return err
	}
	doc, config := filepath.Join(dir, "openapi.json"), filepath.Join(dir, "config.yaml")
	if err := errors.Join(os.WriteFile(doc, text, 0o600), os.WriteFile(config, []byte(oapiCodegen), 0o600)); err != nil {
		return err
	}
	if to, err = filepath.Abs(to); err != nil {
		return err
	}
	cmd := exec.Command("go", "tool", "oapi-codegen", "-config", config, "-o", to, doc)
	cmd.Dir = tools
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("oapi-codegen: %w\n%s", err, said.String())
	}
	return nil
}

// oapiCodegen is its configuration: types and nothing else, which need no package but
// those of the standard library.
const oapiCodegen = `package: sluice
generate: {models: true}
compatibility: {always-prefix-enum-values: true}
output-options:
  skip-prune: true
  skip-enum-validate: true
  name-normalizer: ToCamelCaseWithInitialisms
  type-mapping:
    number: {default: {type: float64}}
    integer: {default: {type: int64}}
    string: {formats: {date: {type: string}, email: {type: string}, uuid: {type: string}, duration: {type: string}, binary: {type: string}, byte: {type: string}}}
`
