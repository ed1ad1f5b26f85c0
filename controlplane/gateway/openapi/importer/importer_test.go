package importer

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
)

var update = flag.Bool("update", false, "rewrite the files in testdata that tests compare with")

// read reads a document of testdata, with the files beside it.
func read(t *testing.T, name string) *document.Document {
	t.Helper()
	open := func(path string, limit int64) ([]byte, error) { return os.ReadFile(filepath.Join("testdata", path)) }
	text, err := open(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	d, err := document.Read(text, open)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// made imports a document and has the configuration checked that it becomes.
func made(t *testing.T, d *document.Document, o Options) (Result, []byte) {
	t.Helper()
	o.Upstream = "http://127.0.0.1:3000"
	r, err := Import(d, o)
	if err != nil {
		t.Fatal(err)
	}
	file, err := Update(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	valid(t, file)
	return r, file
}

func valid(t *testing.T, file []byte) config.Document {
	t.Helper()
	c, _, err := config.ParseYAML(file)
	if err != nil {
		t.Fatal(err)
	}
	c, faults := c.Expand(config.ProfilePlatform)
	if err := config.AllFaults(nil, faults, c); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	return c
}

// What each document becomes, with all that is named, is in testdata.
func TestDocumentsBecomeRoutes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"orders.yaml", "legacy.json", "modern.yaml"} {
		r, file := made(t, read(t, name), Options{Prefix: "/shop"})
		var b strings.Builder
		b.Write(file)
		b.WriteString("---\n")
		for _, n := range r.Notes {
			fmt.Fprintf(&b, "# %d × %s: %s\n", n.Count, n.What, strings.Join(n.Where, ", "))
		}
		var pretty any
		if err := json.Unmarshal(r.Description, &pretty); err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(pretty, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
		golden(t, filepath.Join("testdata", name+".golden"), b.String())
		if _, err := openapi3.NewLoader().LoadFromData(r.Description); err != nil {
			t.Errorf("%s: its description is not OpenAPI: %v", name, err)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

// simple is a document of some operations, one a line: METHOD PATH SECURITY.
func simple(t *testing.T, lines ...string) *document.Document {
	t.Helper()
	paths := map[string]map[string]any{}
	for i, line := range lines {
		method, rest, _ := strings.Cut(line, " ")
		path, more, _ := strings.Cut(rest, " ")
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		op := map[string]any{"operationId": fmt.Sprintf("op%d", i), "responses": map[string]any{"200": map[string]any{"description": "d"}}}
		if more != "" {
			var x map[string]any
			if err := json.Unmarshal([]byte(more), &x); err != nil {
				t.Fatal(err)
			}
			for k, v := range x {
				op[k] = v
			}
		}
		paths[path][method] = op
	}
	text, err := json.Marshal(map[string]any{"openapi": "3.0.0", "info": map[string]any{"title": "Simple API", "version": "1"}, "paths": paths,
		"security":   []any{map[string]any{"key": []any{}}},
		"components": map[string]any{"securitySchemes": map[string]any{"key": map[string]any{"type": "apiKey"}, "o": map[string]any{"type": "oauth2"}}}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := document.Read(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What is not clear is closed: an operation without a credential needs a key unless
// somebody says otherwise, and of several demands none is dropped.
func TestWhoGetsIn(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`get /a`:                                                           "[key] ",
		`get /a {"security":[]}`:                                           "[key] ",
		`get /a {"security":[{},{"key":[]}]}`:                              "[key] ",
		`get /a {"x-sluice-auth":"none"}`:                                  "[none] ",
		`get /a {"x-sluice-auth":"everybody"}`:                             "[key] ",
		`get /a {"x-sluice-auth":["key","session"]}`:                       "[key session] ",
		`get /a {"security":[{"o":["a:b"]}]}`:                              "[key token] a:b",
		`get /a {"security":[{"o":["https://x.example/auth/Mail.Read"]}]}`: "[key token] simple_api:mail_read",
		`get /a {"security":[{"o":["a:b","a:c"]}]}`:                        "[key token] simple_api:a_b_and_a_c",
		`get /a {"security":[{"key":[]},{"o":["a:b"]}]}`:                   "[key token] a:b",
		`get /a {"security":[{"o":["a:b"]}],"x-sluice-auth":"none"}`:       "[none] ",
		`get /a {"security":[{"o":["a:b"]}],"x-sluice-scope":"c:d"}`:       "[key token] c:d",
		`get /a {"security":[{"o":["streams:read"]}]}`:                     "[key token] simple_api:streams_read", // is the platform's own
		`get /a {"security":[{"nobody":[]}]}`:                              "[key] ",
	} {
		r, _ := made(t, simple(t, line), Options{Taken: []string{"streams:read"}})
		if got := fmt.Sprint(r.Routes[0].Auth, " ", r.Routes[0].Scope); got != want {
			t.Errorf("%s: %s, not %s", line, got, want)
		}
	}
	r, _ := made(t, simple(t, `get /a {"security":[]}`), Options{Open: true})
	if got := fmt.Sprint(r.Routes[0].Auth); got != "[none]" {
		t.Errorf("an open operation with --allow-open: %s", got)
	}
}

// Operations that no route can tell apart share one that asks for what all ask.
func TestOperationsThatShareARoute(t *testing.T) {
	t.Parallel()
	r, _ := made(t, simple(t, `get /a/{id}.json {"x-sluice-auth":"none"}`, `get /a/{id}.xml {"security":[{"o":["a:admin"]}]}`, `head /a/{id}.json`), Options{})
	if len(r.Routes) != 1 || fmt.Sprint(r.Routes[0].Auth) != "[key]" || r.Routes[0].Scope != "a:admin" {
		t.Errorf("%+v", r.Routes)
	}
}

func TestTooManyScopesAreFolded(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf(`get /r/%d {"security":[{"o":["r%d:x"]}]}`, i, i), fmt.Sprintf(`put /r/%d {"security":[{"o":["r%d:y"]}]}`, i, i))
	}
	r, _ := made(t, simple(t, lines...), Options{})
	if want := []string{"simple_api:read", "simple_api:write"}; !slices.Equal(r.Scopes, want) {
		t.Errorf("%q", r.Scopes)
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/a/{id}": "/a/{id}", "/a/{petId}/b/{PET-ID}": "/a/{pet_id}/b/{pet_id_2}", "/{1st}": "/{p_1st}", "/a/{}": "/a/{p_}",
		"/a/{x}.json": "/a/{x_json} wide", "/a/{x}:run": "/a/{x_run} wide", "/{a}..{b}": "/{a_b} wide", "/a/": "/a/",
	} {
		got, wide, err := template(path)
		if wide {
			got += " wide"
		}
		if err != nil || got != want {
			t.Errorf("%s: %s %v, not %s", path, got, err, want)
		}
	}
	for _, path := range []string{"/a?b={c}", "/a#b"} {
		if _, _, err := template(path); err == nil {
			t.Errorf("%s is taken", path)
		}
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := simple(t, "get /a")
	for _, o := range []Options{{Product: "No Name"}, {Prefix: "a"}, {Prefix: "/a/"}, {Upstream: "ftp://x"}, {Upstream: "http://a.example/?x"}, {Upstream: "http://u:p@a.example"}} {
		if _, err := Import(d, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
