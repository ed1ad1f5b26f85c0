package main

import (
	_ "embed" // for the template
	"slices"
	"strings"
	"text/template"
)

//go:embed operations.py.tmpl
var pythonTemplate string

var pythonTyped = typed{
	named:    func(name string) string { return "t." + name },
	list:     func(inner string) string { return "list[" + inner + "]" },
	values:   func(inner string) string { return "dict[str, " + inner + "]" },
	kinds:    map[string]string{"string": "str", "integer": "int", "number": "float", "boolean": "bool"},
	anything: "Any",
}

// pythonOperations are the methods of Python's client.
func pythonOperations(d *document) ([]byte, error) {
	return written(pythonTemplate, d, template.FuncMap{
		"name": snake, "arg": pythonArg, "all": func(o operation) string { return "all_" + strings.TrimPrefix(snake(o.ID), "list_") },
		"field": func(p param) string { return fieldOf(pythonTyped, p) }, "type": pythonTyped.of, "path": pythonPath,
		"ordered": func(list []param) []param { // those that must be given are first
			return slices.Concat(of(list, true), of(list, false))
		},
		"quoted": func(s string) string { return strings.ReplaceAll(s, `"`, `'`) },
	})
}

// of are the parameters that must be given, or those that need not be.
func of(list []param, required bool) (some []param) {
	for _, p := range list {
		if p.Required == required {
			some = append(some, p)
		}
	}
	return some
}

// pythonArg is a parameter's name, which no keyword is.
func pythonArg(name string) string {
	if s := snake(name); !slices.Contains([]string{"from", "in", "import", "class", "def", "global"}, s) {
		return s
	}
	return snake(name) + "_"
}

// pythonPath is the expression of an operation's path.
func pythonPath(o operation) string {
	if len(o.PathParams) == 0 {
		return `"` + o.Path + `"`
	}
	path := o.Path
	for _, p := range o.PathParams {
		path = strings.Replace(path, "{"+p.Name+"}", "{quote("+pythonArg(p.Name)+", safe='')}", 1)
	}
	return `f"` + path + `"`
}
