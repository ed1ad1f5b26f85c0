package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	inferred "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sluice.dev/sluice/deploy"
)

var update = flag.Bool("update", false, "rewrite schema.json")

// choices are what fields may hold besides what their types say, by type and
// name of the JSON field.
var choices = map[string][]any{
	"Document.access_log": {"all", "failures", "off"},
	"Route.listener":      {Gateway, Runtime},
	"Route.auth":          {"key", "token", "session", AuthCertificate, "none"},
	"Class.when_cut_off":  {CutOffAvailable, CutOffStrict},
	"Route.validate":      {ValidateRequest},
	"Route.sticky":        {StickyCredential},
	"Engine.use":          {EngineAuto, EngineBuiltin, EngineURL, EngineOff},
	"Parameter.in":        {"path", "query", "header"},
	"Parameter.style":     {"simple", "form", "spaceDelimited", "pipeDelimited"},
}

// comments are the comments of this package's types and fields, as Type and
// Type.Field.
func comments(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok {
				if st, ok := s.Type.(*ast.StructType); ok {
					fieldComments(s.Name.Name, st, found)
				}
			}
			return true
		})
	}
	return found
}

func fieldComments(of string, st *ast.StructType, into map[string]string) {
	for _, f := range st.Fields.List {
		for _, name := range f.Names {
			text := f.Doc.Text()
			if text == "" {
				text = f.Comment.Text()
			}
			into[of+"."+name.Name] = strings.Join(strings.Fields(text), " ")
		}
	}
}

// made builds the schema of type t.
func made(t *testing.T, typ reflect.Type, said map[string]string) *inferred.Schema {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ.Kind() {
	case reflect.Struct:
		return madeStruct(t, typ, said)
	case reflect.Slice:
		return &inferred.Schema{Type: "array", Items: made(t, typ.Elem(), said)}
	case reflect.Map:
		return &inferred.Schema{Type: "object", AdditionalProperties: made(t, typ.Elem(), said)}
	default:
		s, err := inferred.ForType(typ, nil)
		if err != nil {
			t.Fatal(err)
		}
		if typ == reflect.TypeFor[JSONSchema]() {
			return &inferred.Schema{Types: []string{"object", "boolean"}}
		}
		if typ == reflect.TypeFor[Bytes]() {
			return &inferred.Schema{Types: []string{"integer", "string"}, Pattern: `^[0-9.]+ ?([KMGTP]i?B|kB|B)$`}
		}
		if typ == reflect.TypeFor[Duration]() {
			s.Pattern = `^[0-9.]+(ms|s|m|h)([0-9.]+(ms|s|m|h))*$`
		}
		return s
	}
}

func madeStruct(t *testing.T, typ reflect.Type, said map[string]string) *inferred.Schema {
	t.Helper()
	s := &inferred.Schema{Type: "object", Properties: map[string]*inferred.Schema{}, AdditionalProperties: &inferred.Schema{Not: &inferred.Schema{}}}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := made(t, f.Type, said)
		p.Description = said[typ.Name()+"."+f.Name]
		if enum := choices[typ.Name()+"."+name]; enum != nil && p.Items != nil {
			p.Items.Enum = enum
		} else if enum != nil {
			p.Enum = enum
		}
		s.Properties[name] = p
		s.PropertyOrder = append(s.PropertyOrder, name)
		if rest == "" && typ != reflect.TypeFor[Document]() {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

// The schema that is served is the one of the types.
func TestSchemaIsThatOfTheTypes(t *testing.T) {
	t.Parallel()
	s := made(t, reflect.TypeFor[Document](), comments(t))
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", "Sluice configuration"
	want, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want, Schema) {
		t.Error("schema.json is not that of the types: run `go test ./controlplane/gateway/config -run Schema -update`")
	}
}

// An editor finds nothing wrong with the default document, and finds what is.
func TestSchemaJudgesDocuments(t *testing.T) {
	t.Parallel()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", parsed); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	judge := func(text []byte) error {
		js, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(js))
		if err != nil {
			t.Fatal(err)
		}
		return compiled.Validate(v)
	}
	if err := judge(deploy.Document); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{
		"routes: [{name: a, path: /a, auth: [nobody]}]", "routes: [{path: /a, auth: [none]}]", "surprise: 1",
		"products: [{name: a, upstreams: [{address: 'a:1', weight: heavy}]}]", "products: [{name: a, upstreams: [], idle_timeout: soon}]",
	} {
		if judge([]byte(bad)) == nil {
			t.Errorf("%s: nothing is wrong with it", bad)
		}
	}
}
