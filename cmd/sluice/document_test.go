package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sluice.dev/sluice/docs"
	"sluice.dev/sluice/internal/app"
)

// folder has files by name.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// offline has no platform and no local stack.
func offline(t *testing.T) app.Environment {
	t.Helper()
	state := t.TempDir()
	return app.Environment{Lookup: func(name string) (string, bool) { return state, name == "SLUICE_STATE_DIR" }}
}

// validate runs the command and returns all that it wrote, errors included, without
// the folder's name.
func validate(t *testing.T, env app.Environment, dir string, args ...string) (string, error) {
	t.Helper()
	out, err := executeApply(t, validateCommand(env), args...)
	if err != nil {
		out += err.Error()
	}
	return strings.ReplaceAll(out, dir+string(filepath.Separator), ""), err
}

func TestValidate(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"good.yaml":   "include: [builtin]\nproducts: [{name: shop, upstream: 'http://10.0.0.1:3000'}]\nroutes:\n  - {name: shop, path: /*, product: shop}\n",
		"bad.yaml":    "include: [builtin]\nroutes:\n  - {name: a, path: a, timeuot: 1s, product: b}\n  - {name: c, path: /docs/*, methods: [GET], respond: {status: 1}}\n",
		"loop.yaml":   "products: [{name: a, upstream: 'http://127.0.0.1:8080'}]\n",
		"broken.yaml": "a: [",
	})
	env := offline(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	if out, err := validate(t, env, dir, "-f", at("good.yaml")); err != nil || !strings.HasPrefix(out, "no faults: 1 product and 1 route; ") {
		t.Error(out)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"-f", at("bad.yaml"), "--profile", "gateway"}, []string{
			"bad.yaml:3: routes[0].timeuot is not a known field", "bad.yaml:3: routes[0].path must begin with /", "bad.yaml:3: routes[0].product is not a known product",
			"bad.yaml:4: routes[1].path matches the same requests as the built-in route sluice.docs", "bad.yaml:4: routes[1].respond.status is not a status",
		}},
		{[]string{"-f", at("loop.yaml")}, []string{"loop.yaml:1: products[0].upstreams[0].address is an edge's own"}},
		{[]string{"-f", at("broken.yaml")}, []string{"broken.yaml: The document is not valid YAML"}},
		{[]string{"-f", at("none.yaml")}, []string{"none.yaml"}},
		{[]string{"-f", at("good.yaml"), "--profile", "none"}, []string{"SLUICE_PROFILE", "platform or gateway"}},
	} {
		out, err := validate(t, env, dir, c.args...)
		if err == nil {
			t.Errorf("%q: no error", c.args)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%q: %q is not in\n%s", c.args, want, out)
			}
		}
	}
}

// A folder's files are one document, an included file stands below, a later -f on top.
func TestFoldersIncludesAndOverlays(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"all/10-products.yaml": "include: [builtin, ../base/classes.yaml]\nproducts: [{name: shop, upstream: 'http://10.0.0.1:3000'}]\n",
		"all/20-routes.yml":    "routes: [{name: shop, path: /*, product: shop}]\n",
		"all/notes.txt":        "not yaml: [",
		"all/.hidden.yaml":     "not yaml: [",
		"base/classes.yaml":    "include: [more/]\nclasses: [{name: default, per_minute: 60, burst: 7}]\n",
		"base/more/a.yaml":     "include: [../classes.yaml]\naccess_log: all\n", // a circle ends
		"production.yaml":      "classes: [{name: default, per_minute: 6000}]\nproducts: [{name: shop, upstream: 'https://shop.example'}]\n",
		"twice/a.yaml":         "routes: [{name: a, path: /a, respond: {status: 200}}]\n",
		"twice/b.yaml":         "\nroutes: [{name: a, path: /b, respond: {status: 200}}]\n",
		"outer.yaml":           "include: [none.yaml]\n",
		"bad-overlay.yaml":     "routes:\n- name: shop\n  path: shop\n",
		"empty/readme.md":      "",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	d, src, err := readDocument(strings.NewReader(""), []string{at("all"), at("production.yaml")})
	if err != nil || d.text != nil {
		t.Fatal(err, d.text)
	}
	whole, err := checked(offline(t), d, src)
	if err != nil {
		t.Fatal(err)
	}
	if c := whole.Classes[0]; c.PerMinute != 6000 || c.Burst != 7 || whole.AccessLog != "all" || whole.Products[0].Upstreams[0].Address != "shop.example:443" || whole.Routes[0].Name != "shop" {
		t.Errorf("%+v", whole)
	}
	env := offline(t)
	for _, c := range []struct{ files, want string }{
		{"twice", "twice/b.yaml:2: routes[1].name is given twice: also " + at("twice/a.yaml") + ":1"},
		{"outer.yaml", "outer.yaml: include: "},
		{"empty", "has no .yaml file"},
		{"all bad-overlay.yaml", "bad-overlay.yaml:3: routes[0].path must begin with /"},
	} {
		var args []string
		for name := range strings.FieldsSeq(c.files) {
			args = append(args, "-f", at(name))
		}
		out, err := executeApply(t, validateCommand(env), args...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q is not in %s%v", c.files, c.want, out, err)
		}
	}
	if out, err := executeApply(t, applyCommand((&configAPI{}).env(t)), "-f", at("twice")); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Error(out, err)
	}
}

var box = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The documents that the pages show have no fault.
func TestDocumentedDocumentsAreValid(t *testing.T) {
	t.Parallel()
	found := 0
	for _, page := range []string{"config.md", "profiles.md"} {
		b, err := docs.Files.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range box.FindAllSubmatch(b, -1) {
			first := filepath.Join(folder(t, map[string]string{"sluice.yaml": string(m[1])}), "sluice.yaml")
			if strings.Contains(string(m[1]), "include: [builtin]") {
				found++
				if out, err := executeApply(t, validateCommand(offline(t)), "-f", first, "--profile", "gateway"); err != nil {
					t.Errorf("%s: %s%v", page, out, err)
				}
			}
			if strings.HasPrefix(string(m[1]), "# production.yaml") {
				found++
				below := filepath.Join(folder(t, map[string]string{"a.yaml": "include: [builtin]\nproducts: [{name: orders, upstream: 'http://a'}]\n"}), "a.yaml")
				if out, err := executeApply(t, validateCommand(offline(t)), "-f", below, "-f", first, "--profile", "gateway"); err != nil {
					t.Errorf("%s: %s%v", page, out, err)
				}
			}
		}
	}
	if found != 3 {
		t.Errorf("%d documents", found)
	}
}
