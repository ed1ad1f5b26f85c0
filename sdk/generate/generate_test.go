package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// The methods of the SDKs are those of the documents as they stand.
func TestTheSDKsAreCurrent(t *testing.T) {
	t.Parallel()
	d, err := read()
	if err != nil {
		t.Fatal(err)
	}
	files, err := d.files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("sdk/%s is not what the documents say: run make generate (%v)", name, err)
		}
	}
	// Types come from other generators: each schema that methods name has one in each language.
	components, _ := d.schemas()["components"].(object)
	schemas, _ := components["schemas"].(object)
	if len(schemas) < 100 {
		t.Fatalf("%d schemas", len(schemas))
	}
	for file, form := range map[string]string{"go/types.go": `(?m)^type (\w+) `, "typescript/src/types.ts": `(?m)^        "?(\w+)"?: `, "python/sluice/types.py": `(?m)^(?:class |)(\w+)(?:\(TypedDict|: TypeAlias| = |\()`} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]bool{}
		for _, m := range regexp.MustCompile(form).FindAllSubmatch(text, -1) {
			have[string(m[1])] = true
		}
		for _, name := range slices.Sorted(maps.Keys(schemas)) {
			if !have[name] {
				t.Errorf("sdk/%s has no %s: run make generate, and make sdks for TypeScript and Python", file, name)
			}
		}
	}
}

// All SDKs and no other file say the same version.
func TestTheVersionsAreOne(t *testing.T) {
	t.Parallel()
	versions := map[string]bool{}
	for file, form := range map[string]string{
		"go/sluice.go": `const Version = "(.*)"`, "typescript/src/version.ts": `version = "(.*)"`, "typescript/package.json": `"version": "(.*)"`, "python/sluice/_version.py": `__version__ = "(.*)"`,
	} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		m := regexp.MustCompile(form).FindSubmatch(text)
		if err != nil || m == nil {
			t.Fatal(file, err)
		}
		versions[string(m[1])] = true
	}
	if len(versions) != 1 {
		t.Error(versions)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][3]string{
		"listWebhooks":   {"ListWebhooks", "listWebhooks", "list_webhooks"},
		"getVODCaptions": {"GetVODCaptions", "getVODCaptions", "get_vod_captions"},
		"testWebhookURL": {"TestWebhookURL", "testWebhookURL", "test_webhook_url"},
		"stream_id":      {"StreamID", "streamID", "stream_id"},
		"startDate":      {"StartDate", "startDate", "start_date"},
		"id":             {"ID", "id", "id"},
		"type":           {"Type", "typeName", "type"},
	} {
		if got := [3]string{exported(name), unexported(name), snake(name)}; got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What an operation answers, takes and leads on to follows from its description.
func TestOperations(t *testing.T) {
	t.Parallel()
	d, err := parse([]byte(`{"paths":{
		"/v1/things":{"get":{"operationId":"listThings","summary":"List things. Newest first.","parameters":[{"name":"cursor","in":"query","schema":{"type":"string"}},{"name":"format","in":"query","schema":{"type":"string"}}],
			"responses":{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/ThingList"}},"text/csv":{}}}}},
		"post":{"operationId":"createThing","parameters":[{"$ref":"#/components/parameters/Key"}],"requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Thing"}}}},"responses":{"201":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Thing"}}}}}}},
		"/v1/things/{thing}/parts/{id}":{"parameters":[{"name":"id","in":"path"},{"name":"thing","in":"path"}],"get":{"operationId":"getPart","responses":{"200":{"content":{"image/png":{}}}}},"delete":{"operationId":"deletePart","responses":{"204":{}}}},
		"/v1/talk":{"post":{"operationId":"talk","responses":{"200":{"content":{"text/event-stream":{}}}}}}},
		"components":{"parameters":{"Key":{"name":"Idempotency-Key","in":"header"}},"schemas":{
			"Thing":{"type":"object","properties":{"of":{"oneOf":[{"type":"string"},{"type":"integer"}]},"note":{"anyOf":[{"$ref":"#/components/schemas/Note"},{"type":"null"}]}}},"Note":{"type":"string"},"Unused":{"type":"string"},
			"ThingList":{"properties":{"data":{"type":"array","items":{"$ref":"#/components/schemas/Thing"}},"pagination":{"properties":{"next_cursor":{"type":"string"}}}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]operation{}
	for _, o := range d.operations {
		at[o.ID] = o
	}
	if _, ok := at["talk"]; ok || len(at) != 4 {
		t.Error(slices.Sorted(maps.Keys(at)))
	}
	if o := at["listThings"]; o.Next != "next_cursor" || o.Raw || len(o.Query) != 1 || o.About != "List things" || goTyped.of(o.Item) != "Thing" {
		t.Errorf("%+v", o)
	}
	if o := at["createThing"]; !o.Once || o.BodyOptional || pythonTyped.of(o.Body) != "t.Thing" {
		t.Errorf("%+v", o)
	}
	if o := at["getPart"]; !o.Raw || goPath(o) != `path("/v1/things/%s/parts/%s", thing, id)` || pythonPath(o) != `f"/v1/things/{quote(thing, safe='')}/parts/{quote(id, safe='')}"` {
		t.Errorf("%+v", o)
	}
	if o := at["deletePart"]; o.Raw || o.Result != nil {
		t.Errorf("%+v", o)
	}
	components, _ := d.schemasForGo()["components"].(object)
	schemas, _ := components["schemas"].(object)
	thing, _ := schemas["Thing"].(object)
	properties, _ := thing["properties"].(object)
	of, _ := properties["of"].(object)
	note, _ := properties["note"].(object)
	if of["x-go-type"] != "any" || note["x-go-type"] != nil || len(schemas) != 4+2-1-2 {
		t.Error(of, note, slices.Sorted(maps.Keys(schemas)))
	}
}
