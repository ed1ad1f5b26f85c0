package main

import (
	_ "embed" // for the template
	"strings"
	"text/template"
)

//go:embed operations.ts.tmpl
var tsTemplate string

var tsTyped = typed{
	named:    func(name string) string { return `S["` + name + `"]` },
	list:     func(inner string) string { return inner + "[]" },
	values:   func(inner string) string { return "Record<string, " + inner + ">" },
	kinds:    map[string]string{"string": "string", "integer": "number", "number": "number", "boolean": "boolean"},
	anything: "unknown",
}

// tsOperations are the methods of TypeScript's client.
func tsOperations(d *document) ([]byte, error) {
	return written(tsTemplate, d, template.FuncMap{
		"title": exported, "arg": unexported, "all": func(o operation) string { return "all" + strings.TrimPrefix(exported(o.ID), "List") },
		"field": func(p param) string { return fieldOf(tsTyped, p) }, "type": tsTyped.of, "path": tsPath, "must": must,
	})
}

// fieldOf is the type of a parameter in a language: arrays are of texts, what is not known is a text.
func fieldOf(t typed, p param) string {
	if p.Type == "array" {
		return t.list(t.kinds["string"])
	}
	if kind, ok := t.kinds[p.Type]; ok {
		return kind
	}
	return t.kinds["string"]
}

// must reports whether an operation has a query parameter that must be given.
func must(o operation) bool {
	for _, p := range o.Query {
		if p.Required {
			return true
		}
	}
	return false
}

// tsPath is the expression of an operation's path.
func tsPath(o operation) string {
	if len(o.PathParams) == 0 {
		return `"` + o.Path + `"`
	}
	path := o.Path
	for _, p := range o.PathParams {
		path = strings.Replace(path, "{"+p.Name+"}", "${encodeURIComponent("+unexported(p.Name)+")}", 1)
	}
	return "`" + path + "`"
}
