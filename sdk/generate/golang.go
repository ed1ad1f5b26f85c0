package main

import (
	"bytes"
	_ "embed" // for the template
	"go/format"
	"strings"
	"text/template"
)

//go:embed operations.go.tmpl
var goTemplate string

var goTyped = typed{
	named:    exportedType,
	list:     func(inner string) string { return "[]" + inner },
	values:   func(inner string) string { return "map[string]" + inner },
	kinds:    map[string]string{"string": "string", "integer": "int64", "number": "float64", "boolean": "bool"},
	anything: "any",
}

// exportedType is a schema's name as oapi-codegen makes it.
func exportedType(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// goField is the type of a parameter: its zero value is left out of the query.
var goField = map[string]string{"integer": "int", "number": "*float64", "boolean": "*bool", "array": "[]string"}

// goOperations are the methods of Go's client.
func goOperations(d *document) ([]byte, error) {
	text, err := written(goTemplate, d, template.FuncMap{
		"name": exported, "arg": unexported, "all": func(o operation) string { return "All" + strings.TrimPrefix(exported(o.ID), "List") },
		"field": func(p param) string {
			if t, ok := goField[p.Type]; ok {
				return t
			}
			return "string"
		},
		"type": goTyped.of,
		"result": func(s object) string {
			if s["$ref"] != nil {
				return "*" + goTyped.of(s)
			}
			return goTyped.of(s)
		},
		"path": func(o operation) string { return goPath(o) },
		"next": exported,
		"has":  has,
	})
	if err != nil {
		return nil, err
	}
	return format.Source(text)
}

// goPath is the expression of an operation's path.
func goPath(o operation) string {
	if len(o.PathParams) == 0 {
		return `"` + o.Path + `"`
	}
	format, args := `"`+o.Path+`"`, ""
	for _, p := range o.PathParams {
		format = strings.Replace(format, "{"+p.Name+"}", "%s", 1)
		args += ", " + unexported(p.Name)
	}
	return "path(" + format + args + ")"
}

// has reports whether an operation has a query parameter.
func has(o operation, name string) bool {
	for _, p := range o.Query {
		if p.Name == name {
			return true
		}
	}
	return false
}

// written fills a template with the operations.
func written(text string, d *document, funcs template.FuncMap) ([]byte, error) {
	t, err := template.New("").Funcs(funcs).Parse(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, d.operations)
	return b.Bytes(), err
}
