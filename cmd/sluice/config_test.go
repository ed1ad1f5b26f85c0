package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/internal/app"
)

func TestConfigCommands(t *testing.T) {
	t.Parallel()
	const version = `{"version":7,"author":"key_1","against":3,"document":{"classes":[]},"changes":[{"kind":"added","path":"scopes.a:read"}]}`
	for _, c := range []struct {
		args, answer string
		method, url  string
		want         string
	}{
		{"history --limit 2 --before 9", `{"data":[{"version":7,"author":"key_1","changes":3,"note":"why"}]}`, "GET", "/admin/v1/config/versions?before=9&limit=2", "key_1   3        why"},
		{"diff 3 7", version, "GET", "/admin/v1/config/versions/7?against=3", "+ scopes.a:read\n1 changes from version 3 to version 7, by key_1\n"},
		{"diff 7", version, "GET", "/admin/v1/config/versions/7", "+ scopes.a:read\n"},
		{"diff 7 -o json", version, "GET", "/admin/v1/config/versions/7", `"against": 3`},
		{"rollback 3 --dry-run", `{"version":7,"dry_run":true,"changes":[{"kind":"removed","path":"routes.x"}]}`, "POST",
			"/admin/v1/config/versions/3/rollback?dry_run=true", "- routes.x\n1 changes to version 7; nothing was changed\n"},
		{"rollback 3 --dry-run", `{"version":7,"dry_run":true,"changes":[]}`, "POST", "/admin/v1/config/versions/3/rollback?dry_run=true", "nothing to change"},
		{"rollback 3 --dry-run -o json", `{"version":7,"dry_run":true,"changes":[{"kind":"removed","path":"routes.x"}]}`, "POST",
			"/admin/v1/config/versions/3/rollback?dry_run=true", `"dry_run": true`},
		{"rollback 3 --note why", `{"version":8,"changes":[{"kind":"removed","path":"routes.x"}]}`, "POST",
			"/admin/v1/config/versions/3/rollback?note=why", "version 8 is in force"},
		{"show", version, "GET", "/admin/v1/config", "{\n  \"classes\": []\n}\n"},
		{"show 7", version, "GET", "/admin/v1/config/versions/7", `"classes"`},
	} {
		a := &configAPI{answer: c.answer}
		out, err := executeApply(t, configCommand(a.env(t)), strings.Fields(c.args)...)
		wants := error(nil)
		if strings.Contains(c.args, "--dry-run") && !strings.Contains(c.answer, `"changes":[]`) {
			wants = exitWouldChange
		}
		if !errors.Is(err, wants) || a.method != c.method || a.url != c.url || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v, %s %s, %q", c.args, err, a.method, a.url, out)
		}
	}
}

func TestDiffOfNothing(t *testing.T) {
	t.Parallel()
	a := &configAPI{answer: `{"data":[]}`}
	if _, err := executeApply(t, configCommand(a.env(t)), "diff"); err == nil || !strings.Contains(err.Error(), "sluice apply") {
		t.Error(err)
	}
}

func TestSchemaNeedsNoPlatform(t *testing.T) {
	t.Parallel()
	out, err := executeApply(t, configCommand(app.Environment{}), "schema")
	if err != nil || !bytes.Equal([]byte(out), config.Schema) {
		t.Error(err, len(out))
	}
}

func TestObjectsAreShown(t *testing.T) {
	t.Parallel()
	a := &configAPI{answer: `{"data":[{"name":"media","self_serve":true,"per_minute":60}],"name":"media","max_requests":9}`}
	for _, c := range []struct{ kind, args, url, want string }{
		{"product", "list", "/admin/v1/products", "media"},
		{"product", "get media", "/admin/v1/products/media", "max_requests     9"},
		{"plan", "list", "/admin/v1/plans", "true"},
		{"plan", "get free", "/admin/v1/plans/free", "limits"},
		{"class", "list", "/admin/v1/classes", "60"},
		{"class", "get default -o json", "/admin/v1/classes/default", `"max_requests": 9`},
	} {
		root := commands(a.env(t))
		out, err := executeApply(t, root, append([]string{c.kind}, strings.Fields(c.args)...)...)
		if err != nil || a.url != c.url || !strings.Contains(out, c.want) {
			t.Errorf("%s %s: %v %s\n%s", c.kind, c.args, err, a.url, out)
		}
	}
}

func TestNamesAreCompleted(t *testing.T) {
	t.Parallel()
	a := &configAPI{answer: `{"data":[{"name":"streams.list"},{"name":"streams.get"},{"name":"keys"}]}`}
	out, err := executeApply(t, commands(a.env(t)), "__complete", "route", "get", "str")
	if err != nil || a.url != "/admin/v1/routes" || !strings.HasPrefix(out, "streams.list\nstreams.get\n:4") {
		t.Errorf("%v %s %q", err, a.url, out)
	}
	nowhere := app.Environment{Lookup: func(string) (string, bool) { return "", false }}
	if out, err := executeApply(t, commands(nowhere), "__complete", "route", "get", ""); err != nil || !strings.HasPrefix(out, ":4") {
		t.Errorf("without a platform: %v %q", err, out)
	}
}

func TestCompletionIsWrittenForEveryShell(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, err := executeApply(t, commands(app.Environment{}), "completion", shell); err != nil || !strings.Contains(out, "sluice") {
			t.Errorf("%s: %v, %d bytes", shell, err, len(out))
		}
	}
}

// What is shown as YAML is the document, in its order, and can be applied.
func TestConfigShowAsYAML(t *testing.T) {
	t.Parallel()
	d, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := json.Marshal(config.Version{Number: 7, Document: d})
	if err != nil {
		t.Fatal(err)
	}
	a := &configAPI{answer: string(answer)}
	out, err := executeApply(t, configCommand(a.env(t)), "show", "-o", "yaml")
	if err != nil || !strings.Contains(out, "# Version 7") || strings.Index(out, "\nclasses:") > strings.Index(out, "\nroutes:") {
		t.Errorf("%v\n%.500s", err, out)
	}
	again, _, err := config.ParseYAML([]byte(out))
	if err != nil || !again.Equal(d) && len(config.Diff(again, d)) > 0 {
		t.Errorf("%v: another document: %v", err, config.Diff(again, d))
	}
	if _, err := executeApply(t, configCommand(a.env(t)), "show", "-o", "toml"); err == nil {
		t.Error("toml")
	}
}
