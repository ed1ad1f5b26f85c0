package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

// beside are the files of a test, by path.
func beside(files map[string]string) Open {
	return func(path string, limit int64) ([]byte, error) {
		text, ok := files[path]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(text[:min(len(text), int(limit)+1)]), nil
	}
}

// schemas are those of the description of a document with one operation, whose answer
// has the schema given.
func schemas(t *testing.T, schema, rest string, open Open) (string, []Note) {
	t.Helper()
	text := `{openapi: 3.0.0, info: {title: t, version: 1}, paths: {/a: {get: {responses: {200: {description: d, content: {application/json: {schema: ` + schema + `}}}}}}}` + rest + `}`
	d, err := Read([]byte(text), open)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out := d.OpenAPI("", d.Operations)
	answer := child(child(child(child(child(child(child(out, "paths"), "/a"), "get"), "responses"), "200"), "content"), "application/json")
	b, err := json.Marshal([]any{answer["schema"], child(out, "components")["schemas"]})
	if err != nil {
		t.Fatal(err)
	}
	return string(b), d.Notes
}

func TestSchemasBecomeThoseOfToday(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{type: string, nullable: true}`:                                            `{"type":["string","null"]}`,
		`{enum: [a], type: string, nullable: true}`:                                 `{"enum":["a",null],"type":["string","null"]}`,
		`{nullable: true, allOf: [{type: object}]}`:                                 `{"anyOf":[{"allOf":[{"type":"object"}]},{"type":"null"}]}`,
		`{minimum: 1, exclusiveMinimum: true, maximum: 2, exclusiveMaximum: false}`: `{"exclusiveMinimum":1,"maximum":2}`,
		`{exclusiveMinimum: 3}`:                                                     `{"exclusiveMinimum":3}`,
		`{type: object, required: true, properties: {example: {example: x, xml: {}}, required: {type: file}}}`: `{"properties":{"example":{},"required":{"format":"binary","type":"string"}},"type":"object"}`,
		`{type: [string, any], items: [{type: string}], additionalItems: false}`:                               `{"items":false,"prefixItems":[{"type":"string"}],"type":["string"]}`,
		`{type: any, maxLength: "5", pattern: 7, enum: []}`:                                                    `{"maxLength":5}`,
		`{maximum: 9223372036854775807, multipleOf: 0x10}`:                                                     `{"maximum":9223372036854775807,"multipleOf":16}`,
		`{default: 2020-01-01, x-a: b, description: d}`:                                                        `{"default":"2020-01-01","description":"d"}`,
		`true`: `true`,
		`5`:    `{}`,
	} {
		if got, _ := schemas(t, schema, "", nil); got != "["+want+",{}]" {
			t.Errorf("%s: %s, not %s", schema, got, want)
		}
	}
}

func TestReferencesAreFollowed(t *testing.T) {
	t.Parallel()
	open := beside(map[string]string{
		"models/pet.yaml": "type: object\nproperties: {owner: {$ref: '../people.json#/Person'}, self: {$ref: pet.yaml}}\n",
		"people.json":     `{"Person": {"type": "object", "title": "P"}}`,
	})
	for schema, want := range map[string]string{
		`{$ref: '#/components/schemas/A'}`:        `[{"$ref":"#/components/schemas/A"},{"A":{"items":{"$ref":"#/components/schemas/A"},"type":"array"}}]`,
		`{$ref: '#/components/schemas/a~1b%20c'}`: `[{"$ref":"#/components/schemas/a_1b_20c"},{"a_1b_20c":{"type":"null"}}]`,
		`{$ref: 'models/pet.yaml'}`:               `[{"$ref":"#/components/schemas/pet"},{"Person":{"title":"P","type":"object"},"pet":{"properties":{"owner":{"$ref":"#/components/schemas/Person"},"self":{"$ref":"#/components/schemas/pet"}},"type":"object"}}]`,
		`{$ref: './people.json#/Person'}`:         `[{"$ref":"#/components/schemas/Person"},{"Person":{"title":"P","type":"object"}}]`,
	} {
		got, notes := schemas(t, schema, `, components: {schemas: {A: {type: array, items: {$ref: '#/components/schemas/A'}}, 'a/b c': {type: 'null'}, Unused: {}}}`, open)
		if want = strings.NewReplacer("a_1b_20c", "a_1b_c").Replace(want); got != want || notes != nil {
			t.Errorf("%s: %s %v, not %s", schema, got, notes, want)
		}
	}
}

// What a document must not make us read is named, and taken as anything.
func TestReferencesThatAreNotFollowed(t *testing.T) {
	t.Parallel()
	asked := ""
	open := func(path string, _ int64) ([]byte, error) { asked += path + " "; return nil, errors.New("no") }
	for _, ref := range []string{"https://evil.example/a.yaml", "//evil.example/a", "/etc/passwd", "../../etc/passwd", "a/../../x", "file:///etc/passwd", "#/nowhere", "#anchor", "gone.yaml"} {
		got, notes := schemas(t, "{$ref: '"+ref+"'}", "", open)
		if got != `[{"x-sluice-left-out":["$ref"]},{}]` || len(notes) != 1 || notes[0].Where[0] != ref {
			t.Errorf("%s: %s %v", ref, got, notes)
		}
	}
	if asked != "gone.yaml " {
		t.Errorf("asked for %s", asked)
	}
}

func TestDocumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("openapi: 3.0.0\nx0: &x0 [a, a, a, a, a, a, a, a, a, a]\n")
	for i := range 9 {
		alias := fmt.Sprintf("*x%d, ", i)
		fmt.Fprintf(&bomb, "x%d: &x%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(alias, 10), ", "))
	}
	for name, text := range map[string]string{
		"nothing":             "",
		"no object":           "[1]",
		"not OpenAPI":         "a: b",
		"no YAML":             "a: [",
		"no JSON":             `{"a": `,
		"a circle of aliases": "openapi: &a [*a]",
		"deep JSON":           `{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}",
		"deep YAML":           "a: " + strings.Repeat("[", 300) + strings.Repeat("]", 300),
		"aliases":             bomb.String(),
		"too long":            "openapi: 3.0.0" + strings.Repeat(" ", MaxBytes),
	} {
		if _, err := Read([]byte(text), nil); err == nil {
			t.Errorf("%s: taken", name)
		} else if len(err.Error()) > 400 {
			t.Errorf("%s: %d bytes of error", name, len(err.Error()))
		}
	}
}

// Answers that are shared by all operations are written for each: many operations
// with a large one are a bomb.
func TestABombOfReferencesIsRefused(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("openapi: 3.0.0\npaths:\n")
	for i := range 20000 {
		fmt.Fprintf(&b, "  /%d: {get: {responses: {'200': {$ref: '#/components/responses/r'}}}}\n", i)
	}
	b.WriteString("components: {responses: {r: {description: d, content: {application/json: {schema: {anyOf: [" + strings.Repeat("{type: string},", 1000) + "{}]}}}}}}\n")
	if _, err := Read([]byte(b.String()), nil); !errors.Is(err, errLarge) {
		t.Error(err)
	}
}

func TestServersAndTheirPaths(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		`servers: [{url: 'https://a.example/v1/'}]`: "/v1", `servers: [{url: /v1}]`: "/v1", `servers: [{url: 'https://a.example'}]`: "", `servers: [{url: /}]`: "",
		`servers: [{url: 'https://{h}:{p}/{v}', variables: {v: {default: v2}}}]`: "/v2", `servers: []`: "", `servers: [{url: v3}]`: "/v3", `servers: [{url: './'}]`: "",
	} {
		d, err := Read([]byte("openapi: 3.0.0\npaths: {/a: {get: {}}}\n"+server), nil)
		if err != nil || d.Operations[0].Path != want+"/a" {
			t.Errorf("%s: %v %v", server, err, d)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"openapi: 3.0.0\npaths: {/a/{b}: {get: {responses: {200: {$ref: '#/x'}}}}}", `{"swagger":"2.0","paths":{"/a":{"post":{"parameters":[{"in":"body","schema":{"$ref":"#/definitions/A"}}]}}},"definitions":{"A":{"$ref":"#/definitions/A"}}}`,
		"a: &a [*a]", "<<: {openapi: 3.1.0}", "openapi: 3.1.0\nservers: [{url: '{a}'}]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		growth.Linear(t, len(text), 1<<14, 1<<20, func() { // aliases and references stand for more than their bytes
			d, err := Read(text, nil)
			if err != nil {
				if len(err.Error()) > 400 {
					t.Errorf("%d bytes of error", len(err.Error()))
				}
				return
			}
			if _, err := json.Marshal(d.OpenAPI("", d.Operations)); err != nil {
				t.Error(err)
			}
		})
	})
}
