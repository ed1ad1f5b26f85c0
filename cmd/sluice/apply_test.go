package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/deploy"
	"sluice.dev/sluice/internal/app"
)

// configAPI answers every call with a JSON text and notes the last call.
type configAPI struct {
	status int // 0: 200
	answer string
	method string
	url    string
	key    string
	body   []byte
}

func (a *configAPI) env(t *testing.T) app.Environment {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		a.method, a.url, a.key, a.body = r.Method, r.URL.String(), r.Header.Get("Authorization"), b.Bytes()
		if a.status != 0 {
			w.WriteHeader(a.status)
		}
		_, _ = w.Write([]byte(a.answer))
	}))
	t.Cleanup(s.Close)
	set := map[string]string{"SLUICE_ADMIN_URL": s.URL, "SLUICE_ADMIN_KEY": "slk_test"}
	return app.Environment{Lookup: func(name string) (string, bool) { v, ok := set[name]; return v, ok }}
}

// executeApply runs c, below the program's root unless it is that, with args and returns
// what it wrote.
func executeApply(t *testing.T, c *cobra.Command, args ...string) (string, error) {
	t.Helper()
	if c.Name() != "sluice" {
		if !c.HasParent() {
			newRoot().AddCommand(c)
		}
		args = append(strings.Fields(strings.TrimPrefix(c.CommandPath(), "sluice ")), args...)
		c = c.Root()
	}
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func writeDocument(t *testing.T, b []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestApplySendsTheDocumentAndShowsTheChanges(t *testing.T) {
	t.Parallel()
	a := &configAPI{answer: `{"version":7,"dry_run":true,"changes":[
		{"kind":"added","path":"scopes.a:read"},
		{"kind":"removed","path":"routes.x","from":{"path":"/x"}},
		{"kind":"changed","path":"routes.y.timeout","from":"1s","to":"2s"}]}`}
	out, err := executeApply(t, applyCommand(a.env(t)), "-f", writeDocument(t, deploy.Document), "--dry-run", "--note", "try it")
	if status, ok := errors.AsType[exitStatus](err); !ok || status != 2 {
		t.Fatal(err)
	}
	want := "+ scopes.a:read\n- routes.x: {\"path\":\"/x\"}\n~ routes.y.timeout: \"1s\" -> \"2s\"\n3 changes to version 7; nothing was changed\n"
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
	if a.method != "PUT" || a.url != "/admin/v1/config?dry_run=true&note=try+it" || a.key != "Bearer slk_test" {
		t.Errorf("%s %s with %q", a.method, a.url, a.key)
	}
	var sent config.Document
	if err := json.Unmarshal(a.body, &sent); err != nil || sent.Validate() != nil {
		t.Errorf("the document that was sent: %v, %v", err, sent.Validate())
	}
}

func TestApplySaysWhatHappened(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"version":7,"changes":[]}`:                                         "nothing to change: version 7 is in force",
		`{"version":8,"changes":[{"kind":"added","path":"a","to":{"b":1}}]}`: "version 8 is in force, with 1 changes",
	} {
		a := &configAPI{answer: answer}
		out, err := executeApply(t, applyCommand(a.env(t)), "-f", writeDocument(t, deploy.Document))
		if err != nil || !strings.HasSuffix(out, want+"\n") {
			t.Errorf("%v %q", err, out)
		}
	}
}

func TestApplyNamesTheLineOfEachFault(t *testing.T) {
	t.Parallel()
	a := &configAPI{status: 400, answer: `{"error":{"code":"invalid_request"}}`}
	file := writeDocument(t, []byte("classes:\n- {name: default, per_minute: 1}\nproducts: []\nroutes:\n- name: a\n  path: a\n  auth: [key]\n  product: b\n"))
	_, err := executeApply(t, applyCommand(a.env(t)), "-f", file)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{file + ":6: routes[0].path must begin with /", file + ":8: routes[0].product is not a known product (expected a name from products)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
}

// Faults that the version in force has too are the server's to judge.
func TestApplyShowsTheWarningsOfTheServer(t *testing.T) {
	t.Parallel()
	a := &configAPI{answer: `{"version":8,"changes":[{"kind":"removed","path":"scopes.a:b"}],"warnings":[{"field":"routes[0].path","issue":"must begin with /"}]}`}
	file := writeDocument(t, []byte("classes:\n- {name: default, per_minute: 1}\nproducts: []\nroutes:\n- {name: a, path: a, auth: [key], respond: {status: 200}}\n"))
	out, err := executeApply(t, applyCommand(a.env(t)), "-f", file)
	if err != nil || !strings.Contains(out, "warning: routes[0].path must begin with /") || !strings.Contains(out, "version 8 is in force") {
		t.Errorf("%v %s", err, out)
	}
}

func TestApplyOfWhatIsNoDocument(t *testing.T) {
	t.Parallel()
	a := &configAPI{}
	for what, file := range map[string]string{"absent": filepath.Join(t.TempDir(), "none"), "not YAML": writeDocument(t, []byte("a: ["))} {
		if _, err := executeApply(t, applyCommand(a.env(t)), "-f", file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRoutesAndEdgesAreListed(t *testing.T) {
	t.Parallel()
	a := &configAPI{answer: `{"data":[{"name":"keys","id":"edge-1","methods":["GET","POST"],"current":true,"refusals":["routes: no"]}]}`}
	out, err := executeApply(t, objectCommands(a.env(t))[0], "list")
	if err != nil || a.url != "/admin/v1/routes" || !strings.Contains(out, "keys  gateway   GET,POST") {
		t.Errorf("%v %s\n%s", err, a.url, out)
	}
	out, err = executeApply(t, edgesCommand(a.env(t)))
	if err != nil || a.url != "/admin/v1/edges" || !strings.Contains(out, "routes: no") {
		t.Errorf("%v %s\n%s", err, a.url, out)
	}
	a.answer = `{"name":"keys","path":"/v1/auth/keys"}`
	out, err = executeApply(t, objectCommands(a.env(t))[0], "get", "keys/../x", "-o", "json")
	if err != nil || a.url != "/admin/v1/routes/keys%2F..%2Fx" || !strings.Contains(out, `"path": "/v1/auth/keys"`) {
		t.Errorf("%v %s\n%s", err, a.url, out)
	}
}

// Whoever applies a document without the platform's own routes is told, and not left
// without sessions, keys and health.
func TestApplyKeepsWhatIsBuiltIn(t *testing.T) {
	t.Parallel()
	file := writeDocument(t, []byte("products: [{name: a, upstream: 'http://10.0.0.1:1'}]\nroutes: [{name: a, path: /*, product: a}]\n"))
	a := &configAPI{answer: `{"version":7,"changes":[{"kind":"removed","path":"products.sluice","from":{"upstreams":[{"address":"${api}"}]}}]}`}
	if _, err := executeApply(t, applyCommand(a.env(t)), "-f", file); err == nil || !strings.Contains(err.Error(), "include: [builtin]") || !strings.Contains(a.url, "dry_run=true") {
		t.Error(err, a.url)
	}
	if out, err := executeApply(t, applyCommand(a.env(t)), "-f", file, "--without-builtin"); err != nil || strings.Contains(a.url, "dry_run") {
		t.Error(err, out)
	}
	with := writeDocument(t, []byte("include: [builtin]\n"))
	if out, err := executeApply(t, applyCommand(a.env(t)), "-f", with); err != nil || strings.Contains(a.url, "dry_run") || !bytes.Contains(a.body, []byte(`"include":["builtin"]`)) {
		t.Error(err, out, string(a.body))
	}
}

// --dry-run says by its exit status whether something would change.
func TestDryRunExitStatus(t *testing.T) {
	t.Parallel()
	file := writeDocument(t, []byte("include: [builtin]\n"))
	a := &configAPI{answer: `{"version":7,"dry_run":true,"changes":[]}`}
	if _, err := executeApply(t, applyCommand(a.env(t)), "-f", file, "--dry-run"); err != nil {
		t.Error(err)
	}
	a.answer = `{"version":7,"dry_run":true,"changes":[{"kind":"added","path":"scopes.a:b"}]}`
	if _, err := executeApply(t, applyCommand(a.env(t)), "-f", file, "--dry-run"); !errors.Is(err, exitStatus(2)) {
		t.Error(err)
	}
}
