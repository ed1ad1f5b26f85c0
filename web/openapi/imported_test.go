package openapi

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
)

const importedPets = `{"paths":{
	"/pets/{petId}":{"get":{"operationId":"get pet","responses":{"200":{"description":"d","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Page"}}}}}},"delete":{"operationId":"dropPet","responses":{}}},
	"/v1/keys":{"get":{"operationId":"listKeys","responses":{}},"post":{"operationId":"` + "a123456789b123456789c123456789d123456789e123456789f123456789g123456789" + `","responses":{}}}},
	"components":{"schemas":{"Page":{"type":"object","properties":{"next":{"$ref":"#/components/schemas/Page"}}}}}}`

// What was imported is described where a route of its product leads to it, under names
// of its own, and never in the place of what is ours.
func TestImportedOperations(t *testing.T) {
	t.Parallel()
	d, err := join(t).With([]Imported{{"pets", []byte(importedPets)}, {"shop", []byte(importedPets)}, {"torn", []byte("{")}})
	if err == nil || !strings.Contains(err.Error(), "torn") {
		t.Error(err)
	}
	doc := document()
	doc.Routes = append(doc.Routes, config.Route{Name: "pet", Path: "/pets/{pet_id}", Methods: []string{"GET"}, Product: "pets", Auth: []string{"key"}},
		config.Route{Name: "add", Path: "/v1/keys", Methods: []string{"POST"}, Product: "pets", Auth: []string{"key"}})
	p := d.Public(doc, Info{})
	get := at(p, "paths", "/pets/{petId}", "get")
	if at(get, "operationId") != "pets_get_pet" || at(get, "x-sluice", "route") != "pet" ||
		at(get, "responses", "200", "content", "application/json", "schema", "$ref") != "#/components/schemas/pets.Page" {
		t.Error(get)
	}
	if at(p, "components", "schemas", "pets.Page", "properties", "next", "$ref") != "#/components/schemas/pets.Page" {
		t.Error(at(p, "components", "schemas"))
	}
	if at(p, "paths", "/pets/{petId}", "delete") != nil {
		t.Error("an operation without a route is described")
	}
	if at(p, "paths", "/v1/keys", "get", "operationId") != "listKeys" {
		t.Error(at(p, "paths", "/v1/keys"))
	}
	if id, _ := at(p, "paths", "/v1/keys", "post", "operationId").(string); len(id) != maxID || !strings.HasPrefix(id, "pets_a123") {
		t.Error(id)
	}
	if at(join(t).Public(doc, Info{}), "paths", "/pets/{petId}") != nil {
		t.Error("joining altered what was joined")
	}
}
