package openapi

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/controlplane/gateway/config"
)

const shop = `
openapi: 3.0.3
paths:
  /v1/orders:
    get:
      operationId: listOrders
      responses: {'200': {description: d, content: {application/json: {schema: {type: object, properties: {data: {type: array, items: {$ref: '#/components/schemas/Order'}}}}}}}}
    post:
      operationId: createOrder
      requestBody:
        content:
          application/json:
            schema:
              type: object
              properties:
                note: {type: string, default: none, description: for the kitchen}
                address: {type: object, nullable: true, properties: {street: {type: string}}}
                state: {$ref: '#/components/schemas/State'}
      responses: {'201': {$ref: '#/components/responses/Order'}}
  /v1/orders/former:
    get:
      operationId: listFormer
      responses: {'200': {description: 'any, */*', content: {application/json: {schema: {allOf: [{$ref: '#/components/schemas/Page'}, {type: object, properties: {data: {type: array, items: {$ref: '#/components/schemas/Order'}}}}]}}}}}
  /v1/orders/import:
    post: {operationId: importOrders, x-once: false, responses: {'204': {description: d}}}
  /v1/orders/page:
    get: {operationId: showOrders, x-internal: true, responses: {'200': {description: d}}}
components:
  responses:
    Order: {description: d, content: {application/json: {schema: {$ref: '#/components/schemas/Order'}}}}
  schemas:
    Order: {type: object, properties: {state: {$ref: '#/components/schemas/State'}, former: {$ref: '#/components/schemas/Former'}}}
    Page: {type: object, required: [data, more], properties: {data: {type: array, items: {}, description: 'of */*'}, more: {type: boolean}}}
    Anything: {type: object, properties: {before: {type: [object, array, string, number, boolean, 'null']}, id: {type: [string, number]}}}
    State: {type: string, enum: [open, paid]}
    Former: {type: string, enum: [paid, void-ed]}
x-examples:
  createOrder: {note: no onions}
`

func shopDocument(t *testing.T) map[string]any {
	t.Helper()
	d, err := Join(Fragment{"shop", "shop", []byte(shop)})
	if err != nil {
		t.Fatal(err)
	}
	doc := config.Document{Routes: []config.Route{{Name: "orders", Path: "/v1/orders", Product: "shop", Auth: []string{"key"}}, {Name: "more", Path: "/v1/orders/*", Product: "shop", Auth: []string{"key"}}}}
	return d.Public(doc, Info{Title: "t", Version: APIVersion})
}

// Every body has a name; pages of lists have that of what they list, and what may be
// null is a choice of a named object and null.
func TestBodiesHaveNames(t *testing.T) {
	t.Parallel()
	d := shopDocument(t)
	schemas := at(d, "components", "schemas")
	ref := func(path, verb string, more ...string) any {
		return at(d, append(append([]string{"paths", path, verb}, more...), "content", "application/json", "schema", "$ref")...)
	}
	if got := ref("/v1/orders", "get", "responses", "200"); got != "#/components/schemas/OrderList" {
		t.Error(got)
	}
	if got := ref("/v1/orders", "post", "requestBody"); got != "#/components/schemas/CreateOrderBody" {
		t.Error(got)
	}
	want := map[string]any{"anyOf": []any{map[string]any{"$ref": "#/components/schemas/CreateOrderBodyAddress"}, map[string]any{"type": "null"}}}
	if diff := cmp.Diff(want, at(schemas, "CreateOrderBody", "properties", "address")); diff != "" {
		t.Error(diff)
	}
	if got := at(schemas, "CreateOrderBodyAddress", "properties", "street", "type"); got != "string" {
		t.Error(got)
	}
}

// A page that says of what its items are is one object, for two would each have them.
func TestPagesAreOneObject(t *testing.T) {
	t.Parallel()
	d := shopDocument(t)
	name, _ := at(d, "paths", "/v1/orders/former", "get", "responses", "200", "content", "application/json", "schema", "$ref").(string)
	page := at(d, "components", "schemas", strings.TrimPrefix(name, "#/components/schemas/"))
	if at(page, "properties", "data", "items", "$ref") != "#/components/schemas/Order" || at(page, "properties", "more", "type") != "boolean" {
		t.Error(name, page)
	}
	if diff := cmp.Diff([]any{"data", "more"}, at(page, "required")); diff != "" {
		t.Error(diff)
	}
}

// What is said of a schema does not end the comment of a language that it is put into.
func TestDescriptionsEndNoComment(t *testing.T) {
	t.Parallel()
	d, err := Join(Fragment{"shop", "shop", []byte(shop)})
	if err != nil {
		t.Fatal(err)
	}
	said := at(d.Whole(Info{}), "components", "schemas", "Page", "properties", "data", "description")
	if said != "of * /*" {
		t.Error(said)
	}
}

// Generators know no types of many kinds: they are alternatives.
func TestTypesOfManyKinds(t *testing.T) {
	t.Parallel()
	d, err := Join(Fragment{"shop", "shop", []byte(shop)})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"before": map[string]any{},
		"id":     map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "number"}}},
	}
	if diff := cmp.Diff(want, at(d.Whole(Info{}), "components", "schemas", "Anything", "properties")); diff != "" {
		t.Error(diff)
	}
}

// A response does not have the name of a schema, and constants of two enumerations not
// the same one.
func TestNamesDoNotClash(t *testing.T) {
	t.Parallel()
	d := shopDocument(t)
	if got := at(d, "paths", "/v1/orders", "post", "responses", "201", "$ref"); got != "#/components/responses/OrderAnswer" {
		t.Error(got)
	}
	if diff := cmp.Diff([]any{"FormerPaid", "FormerVoidEd"}, at(d, "components", "schemas", "Former", "x-enum-varnames")); diff != "" {
		t.Error(diff)
	}
}

// Generators take a default for a promise: it is told in words.
func TestDefaultsAreTold(t *testing.T) {
	t.Parallel()
	note := at(shopDocument(t), "components", "schemas", "CreateOrderBody", "properties", "note")
	if diff := cmp.Diff(map[string]any{"type": "string", "description": `for the kitchen. Default: "none".`}, note); diff != "" {
		t.Error(diff)
	}
}

func TestOperationsSayWhatTheyAreOf(t *testing.T) {
	t.Parallel()
	d := shopDocument(t)
	post := at(d, "paths", "/v1/orders", "post")
	if diff := cmp.Diff([]any{"orders"}, at(post, "tags")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{map[string]any{"name": "orders"}}, d["tags"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{map[string]any{"$ref": "#/components/parameters/IdempotencyKey"}}, at(post, "parameters")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"note": "no onions"}, at(post, "requestBody", "content", "application/json", "example")); diff != "" {
		t.Error(diff)
	}
	if at(d, "paths", "/v1/orders/import", "post", "parameters") != nil || at(d, "paths", "/v1/orders/import", "post", "x-once") != nil {
		t.Error("an import is said to take an Idempotency-Key")
	}
	if at(d, "paths", "/v1/orders/page") != nil {
		t.Error("a page is described")
	}
}

func TestExampleOfNoOperation(t *testing.T) {
	t.Parallel()
	_, err := Join(Fragment{"shop", "shop", []byte(strings.Replace(shop, "createOrder: {note", "makeOrder: {note", 1))})
	if err == nil || !strings.Contains(err.Error(), "makeOrder") {
		t.Error(err)
	}
}
