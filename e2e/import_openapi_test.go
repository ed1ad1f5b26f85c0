package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const petsDocument = `
openapi: 3.0.3
info: {title: Pets, version: "1"}
servers: [{url: https://pets.example/v1}]
security: [{key: []}]
paths:
  /pets:
    get:
      operationId: listPets
      summary: List pets
      tags: [pets]
      parameters: [{name: kind, in: query, schema: {type: string, enum: [cat, dog]}}]
      responses: {'200': {description: All, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}}
    post:
      operationId: addPet
      tags: [pets]
      security: [{oauth: ['pets:write']}]
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
      responses: {'200': {description: It, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}}
  /pets/{petId}:
    get: {operationId: getPet, tags: [pets], responses: {'200': {description: It, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}}}
  /pets/{petId}/vaccinations/{number}/reports/{report}/pages/{page}/paragraphs/{paragraph}/attachments/{name}/{part}: # a long expression
    get: {operationId: readDeep, responses: {'200': {description: It}}}
components:
  schemas: {Pet: {type: object, properties: {path: {type: string}, name: {type: string}, parent: {$ref: '#/components/schemas/Pet'}}}}
  securitySchemes: {key: {type: apiKey, in: header, name: X-Key}, oauth: {type: oauth2, flows: {}}}
`

// petShop is a service of one's own: it answers with what it was asked.
func petShop(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"path":%q,"name":%q}`, r.Method+" "+r.URL.RequestURI(), body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// shown is what the gateway says of one operation; nil: nothing.
func (s *stack) shown(t testing.TB, method, path string) map[string]any {
	t.Helper()
	d := into[struct {
		Paths map[string]map[string]any `json:"paths"`
	}](t, call(t, http.MethodGet, s.url("/openapi.json"), "", nil))
	op, _ := d.Paths[path][method].(map[string]any)
	return op
}

// validatesAnImport has the edge check requests against the document that they were
// imported from, and goes on with it at the next import.
func (s *stack) validatesAnImport(t *testing.T, runs func(int, ...string) string, document, file, writer string) {
	t.Helper()
	send := func(path string, body any, status int, says string) {
		t.Helper()
		eventually(t, "requests that are checked", func() error {
			r, err := try(http.MethodPost, s.url(path), writer, body)
			if err = unless(err, r, status); err != nil {
				return err
			}
			if !strings.Contains(string(r.body), says) {
				return fmt.Errorf("%s is not in %s", says, r.body)
			}
			return nil
		})
	}
	wrong := map[string]any{"name": 5, "parent": map[string]any{"name": []string{}}}
	send("/v1/pets", wrong, 200, "POST /v1/pets")
	out := runs(0, "import", "openapi", document, "-f", file, "--validate")
	if !strings.Contains(out, "the edge validates requests of 2 routes; of 0 it does not") {
		t.Error(out)
	}
	runs(0, "apply", "-f", file)
	send("/v1/pets", wrong, 400, `"field":"body.parent.name"`)
	send("/v1/pets", wrong, 400, `"field":"body.name"`)
	send("/v1/pets", map[string]any{"name": "Mia", "parent": map[string]any{"name": "Tom"}}, 200, "POST /v1/pets")
	eventually(t, "a query that is checked", func() error { return s.oneOf("/v1/pets?kind=bird", writer, 400) })

	if out = runs(0, "import", "openapi", document, "-f", file); !strings.Contains(out, "validates requests of 2 routes") {
		t.Error("an import without the flag lets go of what the file has: ", out)
	}
	runs(0, "apply", "-f", file)
	send("/v1/pets", wrong, 400, `"field":"body.name"`)
	runs(0, "import", "openapi", document, "-f", file, "--validate=false")
	runs(0, "apply", "-f", file)
	send("/v1/pets", wrong, 200, "POST /v1/pets")
}

// A service described by OpenAPI is put behind the gateway by two commands: its
// operations ask for what the document says, and are in the description of the API
// and among the tools of agents as far as a route leads to them.
func TestAnAPIIsImported(t *testing.T) {
	t.Parallel()
	s, dir := lentStack(t), t.TempDir()
	document, file := filepath.Join(dir, "openapi.yaml"), filepath.Join(dir, "sluice.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runs := func(want int, args ...string) string {
		t.Helper()
		status, out, errs := sluice(t, s.cli(), args...)
		if status != want {
			t.Fatalf("%v: %d, not %d\n%s%s", args, status, want, out, errs)
		}
		return out + errs
	}
	write(document, petsDocument)
	runs(0, "import", "openapi", document, "--upstream", petShop(t), "-f", file)
	if out := runs(0, "apply", "-f", file); !strings.Contains(out, "pets is described: 4 operations") {
		t.Fatal(out)
	}
	s.becomes(t, "/v1/pets", 401)

	s.becomes(t, "/v1/pets/1/vaccinations/2/reports/3/pages/4/paragraphs/5/attachments/a.png/6", 401)

	key := func(scope string) string {
		out := runs(0, "key", "create", "--name", "k", "--scope", scope, "--output", "json")
		return intoText[struct{ Key string }](t, out).Key
	}
	reader, writer := key("streams:read"), key("pets:write")
	eventually(t, "the key", func() error { return s.oneOf("/v1/pets?kind=cat", reader, 200) })
	if r := call(t, http.MethodPost, s.url("/v1/pets"), reader, map[string]any{"name": "Mia"}); r.StatusCode != 403 {
		t.Fatalf("without the scope: %d %s", r.StatusCode, r.body)
	}
	eventually(t, "the scope", func() error {
		r, err := try(http.MethodPost, s.url("/v1/pets"), writer, map[string]any{"name": "Mia"})
		return unless(err, r, 200)
	})

	eventually(t, "the description", func() error {
		if op := s.shown(t, "post", "/v1/pets"); fmt.Sprint(op["x-sluice"]) != "map[product:pets route:pets.add-pet scope:pets:write]" {
			return fmt.Errorf("it is %v", op)
		}
		return nil
	})
	if r := call(t, http.MethodGet, s.url("/docs/reference/pets_addPet"), "", nil); r.StatusCode != 200 || !strings.Contains(r.body, "<code>POST /v1/pets</code>") || !strings.Contains(r.body, "<code>pets:write</code>") {
		t.Errorf("the reference: %d %s", r.StatusCode, r.body)
	}
	a := s.agent(t, writer)
	if got := must(t, a, "pets_getPet", map[string]any{"petId": "7"}); got["path"] != "GET /v1/pets/7" {
		t.Fatal(got)
	}
	if got := must(t, a, "pets_addPet", map[string]any{"name": "Mia"}); got["name"] != `{"name":"Mia"}` {
		t.Fatal(got)
	}
	if _, failure := use(t, s.agent(t, reader), "pets_addPet", map[string]any{"name": "Mia"}); !strings.HasPrefix(failure, "HTTP 403") {
		t.Fatal("a tool goes round its route: ", failure)
	}

	write(document, strings.NewReplacer("name: kind, in: query,", "name: kind, in: query, required: true,", "operationId: getPet,", "operationId: getPet, security: [{oauth: ['pets:read']}],").Replace(petsDocument))
	out := runs(2, "import", "openapi", document, "-f", file, "--dry-run")
	for _, want := range []string{"breaks: GET /v1/pets: the `query` request parameter `kind` became required", "breaks: GET /v1/pets/{pet_id}: needs the scope pets:read", "nothing was changed"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	runs(3, "import", "openapi", document, "-f", file, "--fail-on", "breaking")
	write(document, strings.Replace(petsDocument, "  /pets/{petId}:\n", "  /cats/{petId}:\n", 1))
	if out = runs(0, "import", "openapi", document, "--apply"); !strings.Contains(out, "breaks: GET /v1/pets/{petId}") {
		t.Error(out)
	}
	eventually(t, "the new version", func() error {
		if s.shown(t, "get", "/v1/cats/{petId}") == nil || s.shown(t, "get", "/v1/pets/{petId}") != nil {
			return fmt.Errorf("the former version is described")
		}
		return s.oneOf("/v1/cats/7", writer, 200)
	})
	s.validatesAnImport(t, runs, document, file, writer)
	s.drop(t, "routes/pets.list-pets")
	eventually(t, "an operation without a route", func() error {
		if op := s.shown(t, "get", "/v1/pets"); op != nil {
			return fmt.Errorf("it is described: %v", op)
		}
		return nil
	})
	if r := call(t, http.MethodGet, s.url("/docs/reference/pets_listPets"), "", nil); r.StatusCode != 404 {
		t.Errorf("an operation without a route is in the reference: %d", r.StatusCode)
	}
	if r := call(t, http.MethodDelete, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/products/pets/description", s.dev["SLUICE_ADMIN_KEY"], nil); r.StatusCode != 204 {
		t.Fatal(r.StatusCode)
	}
	eventually(t, "no description", func() error {
		if s.shown(t, "post", "/v1/pets") != nil {
			return fmt.Errorf("it is still there")
		}
		return nil
	})
}
