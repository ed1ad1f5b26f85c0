// Package catalogue lists every event that can be delivered: its name, what it
// means, the JSON Schema of its payload and an example. types.json is the one
// source; the API, the documentation and the checks on publishing read it.
package catalogue

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Test is the event that a test delivery carries (contract 7.12).
const Test = "test.webhook"

// Type is one kind of event.
type Type struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`  // JSON Schema 2020-12 of the whole body
	Example     json.RawMessage `json:"example"` // a whole body

	data *jsonschema.Schema // of the data object alone
}

//go:embed types.json
var source []byte

// types is made when it is first asked for, and nothing changes it then: most processes
// never ask.
var types = sync.OnceValue(func() []Type { return mustLoad(source) })

// All returns the types in the order of the documentation.
func All() []Type { return slices.Clone(types()) }

// Of returns those of All whose names begin with one of groups, such as webhook; nil:
// all of them.
func Of(groups []string) []Type {
	return slices.DeleteFunc(All(), func(t Type) bool {
		group, _, _ := strings.Cut(t.Name, ".")
		return groups != nil && !slices.Contains(groups, group)
	})
}

// Lookup returns the type called name; ok is false when there is none.
func Lookup(name string) (t Type, ok bool) {
	types := types()
	i := slices.IndexFunc(types, func(t Type) bool { return t.Name == name })
	if i < 0 {
		return Type{}, false
	}
	return types[i], true
}

// Known says whether a subscription may ask for pattern: the name of a type,
// "group.*" for a group that has one, or "*".
//
// It takes time linear in pattern for each type, and no memory.
func Known(pattern string) bool { return KnownIn(types(), pattern) }

// KnownIn is Known for some of the types.
func KnownIn(types []Type, pattern string) bool {
	if pattern == "*" {
		return true
	}
	group, wild := strings.CutSuffix(pattern, "*")
	return slices.ContainsFunc(types, func(t Type) bool {
		return t.Name == pattern || wild && strings.HasSuffix(group, ".") && strings.HasPrefix(t.Name, group)
	})
}

// Patterns returns everything that a subscription to an event called name may
// have asked for: the name, a wildcard for each group that it is in, and "*".
func Patterns(name string) []string {
	patterns := []string{name}
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '.' {
			patterns = append(patterns, name[:i+1]+"*")
		}
	}
	return append(patterns, "*")
}

// raw is a row of types.json.
type raw struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	HasStream    bool            `json:"has_stream"`
	HasRecording bool            `json:"has_recording"`
	Data         json.RawMessage `json:"data_schema"`
	Example      json.RawMessage `json:"example"`
}

// mustLoad panics on a source that is not right: it is part of the binary, and a
// test loads it.
func mustLoad(source []byte) []Type {
	var rows []raw
	if err := json.Unmarshal(source, &rows); err != nil {
		panic(fmt.Sprintf("catalogue: %v", err))
	}
	loaded := make([]Type, len(rows))
	for i, r := range rows {
		loaded[i] = Type{Name: r.Name, Description: r.Description, Schema: r.schema(), Example: r.example(), data: compile(r.Name, r.Data)}
	}
	return loaded
}

// compile makes schema ready for checking. Formats such as date-time are
// asserted, not only noted.
func compile(name string, schema []byte) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		panic(fmt.Sprintf("catalogue: %s: %v", name, err))
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, doc); err != nil {
		panic(fmt.Sprintf("catalogue: %s: %v", name, err))
	}
	return c.MustCompile(name)
}
