package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/internal/app"
)

const thingsAPI = `
openapi: 3.0.3
info: {title: Things, version: "1"}
paths:
  /things/{id}: {get: {operationId: getThing, parameters: [{name: id, in: path, required: true, schema: {type: string}}], responses: {'200': {description: ok}}}}
  /things?x: {get: {responses: {'200': {description: ok}}}}
`

// A first configuration is made of a document, brought to a new version of it, and
// says what cannot be taken.
func TestImportOfADocument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, file := filepath.Join(dir, "api.yaml"), filepath.Join(dir, "sluice.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func() config.Document {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, _, err := config.ParseYAML(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	write(source, strings.Replace(thingsAPI, "{type: string}", "{type: integer}", 1))
	if out, err := executeApply(t, initCommand(), "--openapi", source, "--upstream", "http://127.0.0.1:3000", "-o", file, "--validate"); err != nil || !read().Routes[0].Checks() {
		t.Fatal(out, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	write(source, thingsAPI)
	again := []string{"openapi", source, "-f", file}
	if _, err := executeApply(t, importCommand(app.Environment{}), again...); err == nil || !strings.Contains(err.Error(), "--upstream") {
		t.Fatal(err)
	}
	out, err := executeApply(t, initCommand(), "--openapi", source, "--upstream", "http://127.0.0.1:3000/base", "-o", file, "--name", "shop")
	if err != nil || !strings.Contains(out, "put it in force: sluice apply -f "+file) {
		t.Fatal(out, err)
	}
	d := read()
	if r := d.Routes[0]; len(d.Routes) != 1 || r.Name != "shop.get-thing" || r.Path != "/things/{id}" || r.Rewrite.Path != "/base/things/{id}" || r.Auth[0] != "key" {
		t.Fatalf("%+v", d.Routes)
	}
	for _, name := range []string{"shop.openapi.json", "sluice.schema.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := executeApply(t, initCommand(), "--openapi", source, "--upstream", "http://127.0.0.1:3000", "-o", file); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Fatal(err)
	}
	again = append(again, "--product", "shop", "--upstream", "http://127.0.0.1:3000/base")
	if out, err := executeApply(t, importCommand(app.Environment{}), append(again, "--dry-run")...); err != nil || !strings.Contains(out, "0 changes") {
		t.Fatal(out, err)
	}
	write(source, strings.ReplaceAll(thingsAPI, "schema: {type: string}", "schema: {type: integer}"))
	before, _ := os.ReadFile(file)
	if out, err = executeApply(t, importCommand(app.Environment{}), append(again, "--dry-run")...); !errors.Is(err, exitWouldChange) || !strings.Contains(out, "breaks: GET /things/{id}") {
		t.Fatal(out, err)
	}
	if _, err = executeApply(t, importCommand(app.Environment{}), append(again, "--fail-on", "breaking")...); !errors.Is(err, exitBreaks) {
		t.Fatal(err)
	}
	if now, _ := os.ReadFile(file); string(now) != string(before) {
		t.Error("what was only asked about was written")
	}
	if _, err = executeApply(t, importCommand(app.Environment{}), append(again, "--fail-on", "typos")...); err == nil {
		t.Error("--fail-on typos is taken")
	}
}

// Of two products that take the same requests none is written, and the remedy is named.
func TestImportOfWhatIsTaken(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api.yaml" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_, _ = w.Write([]byte(thingsAPI))
	}))
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	run := func(args ...string) (string, error) {
		return executeApply(t, importCommand(app.Environment{}), append([]string{"openapi", "-f", file, "--upstream", "http://127.0.0.1:1"}, args...)...)
	}
	if out, err := run(srv.URL + "/api.yaml"); err != nil {
		t.Fatal(out, err)
	}
	if _, err := run(srv.URL+"/api.yaml", "--product", "other"); err == nil || !strings.Contains(err.Error(), "--prefix") || !strings.Contains(err.Error(), "things.get-thing") {
		t.Error(err)
	}
	if _, err := run(srv.URL+"/api.yaml", "--product", "other", "--prefix", "/other"); err != nil {
		t.Error(err)
	}
	if _, err := run(srv.URL + "/gone"); err == nil || !strings.Contains(err.Error(), "418") {
		t.Error(err)
	}
}

// Into the configuration in force goes what is in force, with the import, and then
// the description.
func TestImportIntoForce(t *testing.T) {
	t.Parallel()
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("If-Match"))
		switch {
		case r.Method == "GET" && r.URL.Path == "/admin/v1/config":
			_, _ = w.Write([]byte(`{"version":7,"document":{"classes":[{"name":"default","per_minute":60}],"plans":[],"scopes":[],"products":[{"name":"kept","upstreams":[{"address":"a:1"}]}],"routes":[]}}`))
		case r.Method == "GET":
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Path == "/admin/v1/config":
			var d config.Document
			if err := json.NewDecoder(r.Body).Decode(&d); err != nil || len(d.Products) != 2 || len(d.Routes) != 1 {
				t.Errorf("%v %+v", err, d)
			}
			_, _ = w.Write([]byte(`{"version":8,"changes":[{"kind":"added","path":"routes.things.get-thing"}]}`))
		default:
			_, _ = w.Write([]byte(`{"operations":1,"changed":true}`))
		}
	}))
	t.Cleanup(srv.Close)
	source := filepath.Join(t.TempDir(), "api.yaml")
	if err := os.WriteFile(source, []byte(thingsAPI), 0o600); err != nil {
		t.Fatal(err)
	}
	api := &adminAPI{Server: srv}
	out, err := executeApply(t, importCommand(api.environment()), "openapi", source, "--upstream", "http://127.0.0.1:1", "--apply")
	if err != nil || !strings.Contains(out, "version 8 is in force") || !strings.Contains(out, "things is described: 1 operations") {
		t.Fatal(out, err)
	}
	want := `GET /admin/v1/config |GET /admin/v1/products/things/description |PUT /admin/v1/config "7"|PUT /admin/v1/products/things/description `
	if got := strings.Join(asked, "|"); got != want {
		t.Error(got)
	}
}
