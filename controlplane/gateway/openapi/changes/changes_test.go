package changes

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
)

const before = `
openapi: 3.0.3
info: {title: Pets, version: "1"}
paths:
  /pets:
    get:
      operationId: listPets
      parameters: [{name: kind, in: query, schema: {type: string, enum: [cat, dog]}}]
      responses: {'200': {description: ok, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Pet'}}}}}}
    post:
      operationId: addPet
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
      responses: {'201': {description: made}}
  /pets/{id}:
    delete: {operationId: dropPet, parameters: [{name: id, in: path, required: true, schema: {type: string}}], responses: {'204': {description: gone}}}
components:
  schemas:
    Pet: {type: object, properties: {name: {type: string}, age: {type: number, nullable: true}, parent: {$ref: '#/components/schemas/Pet'}}}
`

// describe is the description of a document after some texts in it were replaced.
func describe(t *testing.T, replace ...string) []byte {
	t.Helper()
	text := before
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("%q is not there", replace[i])
		}
		text = strings.ReplaceAll(text, replace[i], replace[i+1])
	}
	d, err := document.Read([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(d.OpenAPI("", d.Operations))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatBreaksCallers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replace []string
		kind    Kind
		want    string // a part of operation and text; "": there is no change
	}{
		"nothing":                {nil, Fine, ""},
		"another text":           {[]string{"title: Pets", "title: Animals"}, Fine, ""},
		"an operation is gone":   {[]string{"    delete: {operationId: dropPet,", "    x-gone: {operationId: dropPet,"}, Breaks, "DELETE /pets/{id} api path removed"},
		"a new operation":        {[]string{"    delete: {operationId: dropPet", "    patch: {operationId: edit, responses: {'200': {description: ok}}}\n    delete: {operationId: dropPet"}, Fine, "PATCH /pets/{id} endpoint added"},
		"a new required query":   {[]string{"parameters: [{name: kind,", "parameters: [{name: page, in: query, required: true, schema: {type: string}}, {name: kind,"}, Breaks, "GET /pets added"},
		"a new optional query":   {[]string{"parameters: [{name: kind,", "parameters: [{name: page, in: query, schema: {type: string}}, {name: kind,"}, Fine, "GET /pets added"},
		"a narrower enumeration": {[]string{"enum: [cat, dog]", "enum: [cat]"}, Breaks, "GET /pets removed the enum value"},
		"another type":           {[]string{"schema: {type: string, enum: [cat, dog]}", "schema: {type: integer}"}, Breaks, "GET /pets"},
		"a required property":    {[]string{"Pet: {type: object,", "Pet: {type: object, required: [name],"}, Breaks, "POST /pets"},
		"a required body":        {[]string{"requestBody: {content", "requestBody: {required: true, content"}, Breaks, "POST /pets"},
		"no null any more":       {[]string{", nullable: true", ""}, Breaks, "POST /pets"},
	} {
		list, err := Between(describe(t), describe(t, c.replace...), time.Hour)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.want == "" {
			if len(list) > 0 {
				t.Errorf("%s: %v", name, list)
			}
			continue
		}
		if !slices.ContainsFunc(list, func(x Change) bool {
			return x.Kind == c.kind && strings.HasPrefix(x.Operation+" "+x.Text, c.want)
		}) {
			t.Errorf("%s: none is %q (%s): %v", name, c.want, c.kind, list)
		}
	}
}

func TestWhatRoutesAsk(t *testing.T) {
	t.Parallel()
	route := func(auth, scope string, limit uint64) []config.Route {
		return []config.Route{{Name: "r", Product: "pets", Methods: []string{"GET"}, Path: "/pets/{id}", Auth: strings.Fields(auth), Scope: scope, BodyLimit: limit}}
	}
	for want, c := range map[string][2][]config.Route{
		"[]": {route("key", "a:b", 1), route("key", "a:b", 1)},
		"[{breaks GET /pets/{id} needs the scope a:b}]":                                                     {route("", "", 0), route("key", "a:b", 0)},
		"[{breaks GET /pets/{id} needs the scope a:c in place of a:b}]":                                     {route("key", "a:b", 0), route("key", "a:c", 0)},
		"[{fine GET /pets/{id} needs no scope any more, in place of a:b}]":                                  {route("key", "a:b", 0), route("key", "", 0)},
		"[{breaks GET /pets/{id} does not accept access tokens any more}]":                                  {route("key token", "", 0), route("key", "", 0)},
		"[{breaks GET /pets/{id} does not accept anybody any more} {fine GET /pets/{id} accepts API keys}]": {route("none", "", 0), route("key", "", 0)},
		"[{fine GET /pets/{id} accepts anybody}]":                                                           {route("key", "", 0), route("none", "", 0)},
		"[{breaks GET /pets/{id} takes bodies of at most 5 bytes (0: the default), in place of 0}]":         {route("key", "", 0), route("key", "", 5)},
	} {
		if got := fmt.Sprint(Demands(c[0], c[1], "pets")); got != want {
			t.Errorf("%s, not %s", got, want)
		}
		if other := Demands(c[0], c[1], "other"); len(other) > 0 {
			t.Error(other)
		}
	}
}

func TestPathsThatDifferByTheNamesOfVariables(t *testing.T) {
	t.Parallel()
	twice := describe(t, "  /pets/{id}:\n", "  /pets/{name}:\n    delete: {operationId: again, responses: {'204': {description: gone}}}\n  /pets/{id}:\n")
	if list, err := Between(twice, twice, time.Hour); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
}

func TestWhatCannotBeCompared(t *testing.T) {
	t.Parallel()
	if _, err := Between([]byte("{"), describe(t), time.Hour); err == nil {
		t.Error("a text that is none was compared")
	}
	if _, err := Between(describe(t), describe(t), 0); !errors.Is(err, ErrSlow) {
		t.Error(err)
	}
}
